package cpu_test

import (
	"context"
	"fmt"

	"goatb/device"
	"goatb/device/cpu"
)

// Example_taskList captures a kernel as a task list and replays it, each time
// with other memory.
func Example_taskList() {
	if err := replayDoubles(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [2 4 6]
	// [20 40 60]
}

func replayDoubles() error {
	d, err := cpu.New()
	if err != nil {
		return err
	}
	defer d.Close()
	can, err := device.LimitsOf(d)
	if err != nil {
		return err
	}
	double := &device.Program{Name: "double", Run: func(a *device.Args, block int) error {
		a.Mem(1)[block] = 2 * a.Mem(0)[block]
		return nil
	}}
	in, out := device.Wrap(make([]byte, 3)), device.Wrap(make([]byte, 3))

	c := device.NewCapture("doubles", can)
	c.Declare(device.InputMemory, 0, in)
	c.Declare(device.OutputMemory, 0, out)
	err = c.Stream("main").Launch(&device.Launch{Program: double, Blocks: 3, Buffers: []device.Buffer{in, out}, Inputs: 1})
	if err != nil {
		return err
	}
	list, err := c.Finish()
	if err != nil {
		return err
	}
	m, err := d.Load(list)
	if err != nil {
		return err
	}
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	for _, data := range [][]byte{{1, 2, 3}, {10, 20, 30}} {
		result := make([]byte, len(data))
		err := m.Replay(s, &device.Refresh{Moves: []device.Relocation{
			{Type: device.InputMemory, Buffer: device.Wrap(data)},
			{Type: device.OutputMemory, Buffer: device.Wrap(result)},
		}})
		if err != nil {
			return err
		}
		if err := s.Synchronize(context.Background()); err != nil {
			return err
		}
		fmt.Println(result)
	}
	return m.Unload()
}
