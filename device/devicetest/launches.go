package devicetest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

var launchChecks = []check{
	{"arguments", checkArguments},
	{"copied at enqueue", checkLaunchCopied},
	{"inline tiling of all sizes", checkInlineSizes},
	{"tiling read when the kernel runs", checkDeviceTiling},
	{"many operands", checkManyOperands},
	{"every block once", checkBlocks},
	{"prepared before blocks", checkBegin},
	{"refused", checkLaunchRefused},
}

func checkArguments(b *bed) {
	s := b.stream()
	x, y := b.alloc(64), b.alloc(128)
	wrapped := device.Wrap(pattern(32, 3))
	l := &device.Launch{
		Blocks: 3, Key: 1<<63 + 5, Inputs: 2,
		Buffers: []device.Buffer{x, {}, wrapped, y.At(64, 32)},
		Scratch: y.At(0, 64), Inline: []byte{1, 2, 3},
	}
	var seen [3]device.Args
	l.Program = &device.Program{Name: "test/args", Run: func(a *device.Args, block int) error {
		seen[block] = *a
		seen[block].Buffers = slices.Clone(a.Buffers)
		seen[block].Tiling = slices.Clone(a.Tiling)
		return nil
	}}
	s.launch(l)
	s.sync()
	for block, a := range seen {
		require.Equal(b, 3, a.Blocks, "block %d", block)
		require.Equal(b, l.Key, a.Key)
		require.Equal(b, l.Buffers, a.Buffers)
		require.Nil(b, a.Mem(1), "absent operand")
		require.Equal(b, pattern(32, 3), a.Mem(2))
		require.Equal(b, l.Scratch, a.Scratch)
		require.Equal(b, []byte{1, 2, 3}, a.Tiling)
	}
	require.EqualValues(b, 1, s.Stats().Launches)
}

func checkLaunchCopied(b *bed) {
	s, release := b.stalled()
	x, y := b.alloc(8), b.alloc(8)
	inline := []byte{7, 8}
	bufs := []device.Buffer{x}
	var tiling []byte
	var blocks atomic.Int64
	l := &device.Launch{Blocks: 2, Key: 9, Buffers: bufs, Inline: inline, Program: &device.Program{Name: "test/first", Run: func(a *device.Args, block int) error {
		blocks.Add(1)
		if block == 0 {
			tiling = slices.Clone(a.Tiling)
			a.Mem(0)[0] = byte(a.Key)
		}
		return nil
	}}}
	s.launch(l)
	inline[0], bufs[0] = 99, y
	*l = device.Launch{Blocks: 5, Program: &device.Program{Name: "test/other", Run: func(*device.Args, int) error { return status.ErrInternal }}}
	b.settle()
	require.Zero(b, blocks.Load(), "the stream is held")
	release()
	s.sync()
	require.Equal(b, []byte{7, 8}, tiling)
	require.EqualValues(b, 2, blocks.Load())
	require.EqualValues(b, 9, x.Bytes()[0])
	require.Zero(b, y.Bytes()[0])
}

func checkInlineSizes(b *bed) {
	s, release := b.stalled()
	sizes := []int{0, 1, 8, 63, 64, 65, 1000, 4096, 70000, 1 << 20, 3, 512, 200000, 16}
	var problems []string
	for i, n := range sizes {
		s.launch(&device.Launch{Blocks: 1, Inline: pattern(n, i), Program: &device.Program{Name: "test/inline", Run: func(a *device.Args, _ int) error {
			if !slices.Equal(a.Tiling, pattern(n, i)) || (n > 0 && address(a.Tiling)%64 != 0) {
				problems = append(problems, fmt.Sprintf("%d bytes at %#x", len(a.Tiling), address(a.Tiling)))
			}
			return nil
		}}})
	}
	release()
	s.sync()
	require.Empty(b, problems)
}

func checkDeviceTiling(b *bed) {
	s, release := b.stalled()
	tiling := b.alloc(256)
	copy(tiling.Bytes(), repeat(1, 256))
	var seen [2][]byte
	for i := range seen {
		s.launch(&device.Launch{Blocks: 1, Tiling: tiling.At(int64(64*i), 64), Program: &device.Program{Name: "test/tiling", Run: func(a *device.Args, _ int) error {
			seen[i] = slices.Clone(a.Tiling)
			return nil
		}}})
	}
	writer := b.stream()
	writer.copy(tiling, device.WrapHost(pattern(256, 4)))
	writer.sync()
	release()
	s.sync()
	require.Equal(b, pattern(256, 4)[:64], seen[0])
	require.Equal(b, pattern(256, 4)[64:128], seen[1])
}

func checkManyOperands(b *bed) {
	s := b.stream()
	mem := b.alloc(4096)
	for _, n := range []int{1, 9, 300, 2, 3000} {
		bufs := make([]device.Buffer, n)
		for i := range bufs {
			bufs[i] = mem.At(int64(i), 1)
		}
		s.launch(&device.Launch{Blocks: 1, Buffers: bufs, Program: &device.Program{Name: "test/many", Run: func(a *device.Args, _ int) error {
			for i := range a.Buffers {
				a.Mem(i)[0] = byte(i + n)
			}
			return nil
		}}})
		s.sync()
		for i := range n {
			require.Equal(b, byte(i+n), mem.Bytes()[i], "operand %d of %d", i, n)
		}
	}
}

func checkBlocks(b *bed) {
	s := b.stream()
	for _, blocks := range []int{1, 2, 3, 4, 5, 7, 8, 13, 16, 64, 100, 1000, 4097} {
		const rounds = 5
		counts := make([]atomic.Int32, blocks)
		p := &device.Program{Name: "test/blocks", Run: func(a *device.Args, block int) error {
			counts[block].Add(1)
			return nil
		}}
		for range rounds {
			s.launch(&device.Launch{Program: p, Blocks: blocks})
		}
		s.sync()
		for i := range counts {
			require.EqualValues(b, rounds, counts[i].Load(), "block %d of %d", i, blocks)
		}
	}
}

// checkBegin runs programs that prepare what their blocks read.
func checkBegin(b *bed) {
	s, cause := b.stream(), errors.New("nothing to prepare")
	var ran atomic.Int32
	for _, blocks := range []int{1, 100} {
		l := device.Launch{Blocks: blocks, Scratch: b.alloc(8), Inline: []byte{6}}
		p := device.Program{Name: "test/begin", Run: func(a *device.Args, _ int) error {
			if ran.Add(1); a.Scratch.Bytes()[3] != a.Tiling[0] {
				return errors.New("nothing is prepared")
			}
			return nil
		}}
		for _, c := range []struct {
			text  string
			begin func(a *device.Args) error
		}{
			{"", func(a *device.Args) error { a.Scratch.Bytes()[3] += a.Tiling[0]; return nil }},
			{cause.Error(), func(*device.Args) error { return cause }},
			{"an empty hand", func(*device.Args) error { panic("an empty hand") }},
		} {
			prepared := p
			prepared.Begin, l.Program = c.begin, &prepared
			ran.Store(0)
			s.launch(&l)
			err := s.Synchronize(b.Context())
			if c.text == "" {
				require.NoError(b, err)
				require.EqualValues(b, blocks, ran.Load())
				continue
			}
			require.ErrorIs(b, err, status.ErrRuntimeFail)
			require.ErrorContains(b, err, c.text)
			require.Zero(b, ran.Load(), "blocks of a launch that is not prepared")
		}
	}
}

func checkLaunchRefused(b *bed) {
	s := b.stream()
	x, gone := b.alloc(16), b.alloc(16)
	require.NoError(b, b.dev.Free(gone))
	run := func(*device.Args, int) error { return status.ErrInternal }
	p := &device.Program{Name: "test/refused", Run: run}
	for _, c := range []struct {
		name string
		l    *device.Launch
		want status.Code
		text string
	}{
		{"nil launch", nil, status.ErrInvalidParam, "program"},
		{"no program", &device.Launch{Blocks: 1}, status.ErrInvalidParam, "program"},
		{"no run", &device.Launch{Blocks: 1, Program: &device.Program{}}, status.ErrInvalidParam, "program"},
		{"no blocks", &device.Launch{Program: p}, status.ErrInvalidParam, "blocks"},
		{"negative blocks", &device.Launch{Program: p, Blocks: -2}, status.ErrInvalidParam, "-2"},
		{"negative inputs", &device.Launch{Program: p, Blocks: 1, Inputs: -1}, status.ErrInvalidParam, "inputs"},
		{"too many inputs", &device.Launch{Program: p, Blocks: 1, Inputs: 2, Buffers: []device.Buffer{x}}, status.ErrInvalidParam, "inputs"},
		{"freed operand", &device.Launch{Program: p, Blocks: 1, Buffers: []device.Buffer{x, {}, gone}}, status.ErrInvalidTensorAddr, "operand 2"},
		{"window outside", &device.Launch{Program: p, Blocks: 1, Buffers: []device.Buffer{x, x.At(8, 9)}}, status.ErrInvalidTensorAddr, "operand 1"},
		{"window before", &device.Launch{Program: p, Blocks: 1, Buffers: []device.Buffer{x.At(-1, 4)}}, status.ErrInvalidTensorAddr, "operand 0"},
		{"freed scratch", &device.Launch{Program: p, Blocks: 1, Scratch: gone}, status.ErrInvalidTensorAddr, "scratch"},
		{"freed tiling", &device.Launch{Program: p, Blocks: 1, Tiling: gone}, status.ErrInvalidTensorAddr, "tiling"},
	} {
		err := s.Launch(c.l)
		assert.ErrorIs(b, err, c.want, c.name)
		assert.ErrorContains(b, err, c.text, c.name)
	}
	s.sync()
	require.Zero(b, s.Stats().Launches)
}
