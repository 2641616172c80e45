package cpu_test

import (
	"context"
	"fmt"

	"goatb/device"
	"goatb/device/cpu"
)

// Example runs one kernel of four blocks between two copies.
func Example() {
	d, err := cpu.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	s, err := d.NewStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := d.Alloc(8)
	if err != nil {
		fmt.Println(err)
		return
	}

	double := &device.Program{Name: "double", Run: func(a *device.Args, block int) error {
		part := a.Mem(0)[2*block : 2*block+2]
		for i := range part {
			part[i] *= a.Tiling[0]
		}
		return nil
	}}
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for _, enqueue := range []func() error{
		func() error { return s.Copy(x, device.WrapHost(data)) },
		func() error {
			return s.Launch(&device.Launch{Program: double, Blocks: 4, Buffers: []device.Buffer{x}, Inline: []byte{2}})
		},
		func() error { return s.Copy(device.WrapHost(data), x) },
		func() error { return s.Synchronize(context.Background()) },
	} {
		if err := enqueue(); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(data)
	// Output: [2 4 6 8 10 12 14 16]
}
