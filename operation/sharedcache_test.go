package operation_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device/cpu"
	"goatb/tilingcache"
)

// Two contexts of one device and one tiling cache, each on its goroutine.
func TestTwoContextsOneCache(t *testing.T) {
	d, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	shared, err := tilingcache.NewGlobal(3)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			b := &bed{TB: t, dev: d}
			b.c = b.context(atbctx.WithPolicy(policies[1+n]), atbctx.WithGlobalCache(shared))
			g := b.shifted()
			for i := range 300 {
				p := b.pack2(g, []float32{float32(i)}, host(int32(i%10), int32(n)))
				ws := b.setup(g, p)
				b.execute(g, p, ws)
				if i%10 == 0 {
					assert.Equal(t, []float32{10 * (2*float32(i) + float32(i%10) + float32(n))}, b.values(p.Out[0]))
				}
				b.sync()
				require.NoError(t, b.c.Free(ws))
				require.NoError(t, b.c.Free(p.Out[0].Data))
			}
		})
	}
	wg.Wait()
	assert.Positive(t, shared.Stats().Hits)
}
