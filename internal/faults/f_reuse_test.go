package faults_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
)

// F07: eleven operations of a library did not refresh what a cache hit may not
// keep. Here all of them, with everything that can change.
func TestF07(t *testing.T) {
	each(t, func(t *testing.T, s *sample) {
		rng := random(7)
		first, second, larger := s.in(rng, 3), s.in(rng, 3), s.in(rng, 5)
		wantSecond, wantLarger, wantFirst := cold(t, s.spec, second...), cold(t, s.spec, larger...), cold(t, s.spec, first...)
		require.NotEqual(t, wantFirst[0], wantSecond[0], "the data make no difference")
		for _, policy := range policies {
			b := newBed(t, atb.WithPolicy(policy))
			c := b.ready(s.spec, first...)
			c.execute(c.op, c.pack, c.ws)
			assert.Equal(t, wantFirst, c.images(), "%s: first", policy)

			again := b.on(c.op, second...)
			again.ws = b.areaLike(c.ws)
			again.execute(again.op, again.pack, again.ws)
			assert.Equal(t, wantSecond, again.images(), "%s: other data, addresses and workspace after one setup", policy)

			for name, step := range map[string]struct {
				in   []operand
				want [][]byte
			}{"larger": {larger, wantLarger}, "back": {first, wantFirst}, "other data": {second, wantSecond}} {
				x := b.on(c.op, step.in...)
				x.ws = b.setup(x.op, x.pack)
				x.execute(x.op, x.pack, x.ws)
				assert.Equal(t, step.want, x.images(), "%s: %s", policy, name)
			}
			x := b.ready(s.spec, second...)
			x.execute(x.op, x.pack, x.ws)
			assert.Equal(t, wantSecond, x.images(), "%s: another operation with equal parameters", policy)
		}
		if s.other == nil {
			return
		}
		wantOther := cold(t, s.other, second...)
		require.NotEqual(t, wantSecond[0], wantOther[0], "the other parameters make no difference")
		b := newBed(t)
		c := b.ready(s.spec, second...)
		for _, step := range []struct {
			spec atb.Spec
			want [][]byte
		}{{s.spec, wantSecond}, {s.other, wantOther}, {s.spec, wantSecond}} {
			require.NoError(t, c.op.Update(step.spec))
			x := b.on(c.op, second...)
			x.ws = b.setup(x.op, x.pack)
			x.execute(x.op, x.pack, x.ws)
			assert.Equal(t, step.want, x.images(), "other parameters")
		}
	})
}
