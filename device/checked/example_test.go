package checked_test

import (
	"context"
	"errors"
	"fmt"

	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
)

// Example forgets to order two streams that write the same memory.
func Example() {
	inner, err := cpu.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	d := checked.New(inner)
	defer d.Close()
	x, err := d.Alloc(64)
	if err != nil {
		fmt.Println(err)
		return
	}
	scale := &device.Launch{
		Program: &device.Program{Name: "scale", Run: func(*device.Args, int) error { return nil }},
		Blocks:  1, Buffers: []device.Buffer{x},
	}
	var streams [2]device.Stream
	for i := range streams {
		if streams[i], err = d.NewStream(); err != nil {
			fmt.Println(err)
			return
		}
		if err := streams[i].Launch(scale); err != nil {
			fmt.Println(err)
			return
		}
	}
	for i, s := range streams {
		f, found := errors.AsType[*checked.Finding](s.Synchronize(context.Background()))
		fmt.Println("stream", i, found)
		if found {
			fmt.Println(f.Kind)
		}
	}
	// Output:
	// stream 0 false
	// stream 1 true
	// race
}
