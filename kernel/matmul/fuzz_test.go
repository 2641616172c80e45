package matmul

import (
	"math/rand/v2"
	"testing"

	"goatb/internal/cpu"
	"goatb/tensor"
)

// FuzzProduct compares products of any shape, layout and level with float64.
func FuzzProduct(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint8(0), uint16(3), uint16(40), uint16(513), false)
	f.Add(uint64(2), uint8(1), uint8(3), uint16(15), uint16(33), uint16(7), true)
	f.Add(uint64(3), uint8(2), uint8(1), uint16(1), uint16(64), uint16(64), false)
	f.Add(uint64(4), uint8(3), uint8(2), uint16(29), uint16(1), uint16(1), true)
	types := append([]tensor.DType{tensor.Int8}, floats...)
	levels := cpu.Levels(cpu.Detected())
	f.Fuzz(func(t *testing.T, seed uint64, elem, level uint8, m, n, k uint16, special bool) {
		defer cpu.Limit(levels[int(level)%len(levels)])()
		r := rand.New(rand.NewPCG(seed, 1))
		c := randomProduct(r, types[int(elem)%len(types)])
		c.m, c.n, c.k = 1+int64(m)%64, 1+int64(n)%100, 1+int64(k)%1100
		c.special = special && c.x != tensor.Int8
		d := newData(c, seed)
		d.check(t, d.run(t))
		d.check(t, d.runPacked(t))
	})
}
