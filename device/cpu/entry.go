package cpu

import (
	"encoding/binary"
	"sync/atomic"

	"goatb/device"
	"goatb/status"
)

// entry is a queue entry of a model's stream. An event wait is one entry here
// and counts as two where entries are counted.
type entry struct {
	kind  device.TaskKind
	label *device.Label
	sunk  bool // a kernel that is tiled on the device
	runs  atomic.Int64

	parts  []part      // kernels: one, or those of a super kernel
	event  *modelEvent // of a wait or a record
	prep   *preprocess // of a preprocess task
	source patchSource // of an update
	target *part       // of an update
	copy   task        // of a copy
}

// width is the number of queue entries.
func (e *entry) width() int { return e.kind.Entries() }

// part is one kernel of an entry.
type part struct {
	label   *device.Label
	task    task     // what a stream's launch takes; the choice fills in the rest
	choices []choice // as loaded, then the variants of tables
	vector  device.Args

	// word holds the parameters of the next run: the choice in the high half, the
	// block dim in the low half. An update replaces it as a whole.
	word atomic.Uint64
	// ran is the word of the last run.
	ran atomic.Uint64

	flag   *modelEvent // of a sunk part of a super kernel
	source patchSource
}

// choice is a variant of a kernel.
type choice struct {
	key   uint64
	prog  *device.Program
	ratio int // vector parts for each block, 0 for none
}

// parameters packs a choice and a block dim.
func parameters(choice uint64, blocks uint32) uint64 { return choice<<32 | uint64(blocks) }

func (p *part) addChoices(b *device.Binary) {
	for i := range b.Variants {
		v := &b.Variants[i]
		p.addChoice(v.Key, v.Program, v.Vector, v.Ratio)
	}
}

// addChoice adds a variant. Cube and vector parts become one program.
func (p *part) addChoice(key uint64, cube, vector *device.Program, ratio int) {
	c := choice{key: key, prog: cube, ratio: ratio}
	if vector != nil {
		begin := func(a *device.Args) error {
			if err := cube.Prepare(a); err != nil {
				return err
			}
			return vector.Prepare(&p.vector)
		}
		c.prog = &device.Program{Name: cube.Name, Cost: cube.Cost, Begin: begin, Run: func(a *device.Args, block int) error {
			if err := cube.Run(a, block); err != nil {
				return err
			}
			for i := range ratio {
				if err := vector.Run(&p.vector, block*ratio+i); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	p.choices = append(p.choices, c)
}

// prepare sets the task of a launch with the given parameters up.
func (p *part) prepare(word uint64) {
	c, t := &p.choices[word>>32], &p.task
	t.prog, t.key, t.blocks = c.prog, c.key, int(uint32(word))
	if c.ratio == 0 {
		return
	}
	p.vector = device.Args{Blocks: t.blocks * c.ratio, Key: c.key, Buffers: t.bufs, Scratch: t.a, Tiling: t.data}
	if !t.inline {
		p.vector.Tiling = t.b.Bytes()
	}
}

// patchSource is where parameters come from at run time.
type patchSource struct {
	key, blocks device.Buffer
	binary      *device.Binary
	first       uint64 // choice of the table's first variant
}

// read returns the parameters that stand in memory now. Memory that is gone is
// an error.
func (s *patchSource) read() (word uint64, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = status.Errorf(status.ErrRuntimeFail, "read tiling key and block dim: %v", v)
		}
	}()
	key := binary.LittleEndian.Uint64(s.key.Bytes())
	blocks := binary.LittleEndian.Uint32(s.blocks.Bytes())
	if blocks < 1 || blocks > maxBlocks {
		return 0, status.Errorf(status.ErrRuntimeFail, "want a block dim of 1 to %d from the tiling, got %d", maxBlocks, blocks)
	}
	for i := range s.binary.Variants {
		if s.binary.Variants[i].Key == key {
			return parameters(s.first+uint64(i), blocks), nil
		}
	}
	return 0, status.Errorf(status.ErrRuntimeFail, "%w: %d is none of the %d keys of %s", device.FaultVariant, key, len(s.binary.Variants), s.binary.Name)
}

// state is what the entry holds now.
func (e *entry) state() device.TaskState {
	out := device.TaskState{Runs: e.runs.Load()}
	for i := range e.parts {
		p := &e.parts[i]
		word := p.word.Load()
		if ran := p.ran.Load(); p.flag != nil && ran != 0 {
			word = ran
		}
		blocks := uint32(word)
		if (p.flag != nil || e.kind != device.SuperKernelTask && e.sunk) && word>>32 == 0 {
			blocks = device.BlocksPending
		}
		out.Key, out.Blocks = p.choices[word>>32].key, max(out.Blocks, blocks)
	}
	return out
}
