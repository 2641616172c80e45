package atb_test

import (
	"context"
	"fmt"
	"log"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/elementwise"
	"goatb/operation/norm"
	"goatb/operation/shape"
)

// An operation is made, set up, executed and waited for.
func ExampleNew() {
	dev, err := cpu.New()
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	c, err := atb.NewContext(dev)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	op, err := atb.New(shape.Transpose{Perm: []int64{1, 0}})
	if err != nil {
		log.Fatal(err)
	}
	defer op.Close()
	x, err := atb.FromSlice(c, []float32{1, 3, 2, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	y, err := atb.NewTensor(c, x.Desc)
	if err != nil {
		log.Fatal(err)
	}
	pack := atb.VariantPack{In: []atb.Tensor{x}, Out: []atb.Tensor{y}}
	size, err := op.Setup(pack, c)
	if err != nil {
		log.Fatal(err)
	}
	ws, err := c.Workspace(size)
	if err != nil {
		log.Fatal(err)
	}
	if err := op.Execute(pack, ws, c); err != nil {
		log.Fatal(err)
	}
	got, err := atb.ToSlice[float32](context.Background(), c, y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got)
	// Output: [1 2 3 4]
}

// A graph joins operations by the names of their tensors; nodes may come in any
// order.
func ExampleBuildGraph() {
	g, err := atb.BuildGraph("residual", []string{"x", "gamma"}, []string{"y"}).
		AddSpec(elementwise.Of(elementwise.Add), []string{"x", "normed"}, []string{"y"}).
		AddSpec(norm.RMS(norm.Plain, 1e-5), []string{"x", "gamma"}, []string{"normed"}).
		Build()
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	fmt.Println(g.Name(), g.InputNum(), g.OutputNum())
	// Output: residual 2 1
}

// Errors say which operation, stage and tensor, what was wanted and what was
// got.
func ExampleOpError() {
	op, err := atb.New(norm.RMS(norm.Plain, 1e-5))
	if err != nil {
		log.Fatal(err)
	}
	_, err = op.InferShape([]atb.Desc{atb.Of(atb.Float32, 2, 8), atb.Of(atb.Float32, 4)})
	fmt.Println(err)
	// Output: RmsNormOperation: infer shape: input 1 (gamma): want [8] or 1s before it as x is [2,8], got [4] (ERROR_INVALID_TENSOR_DIM)
}

// A graph is compiled once, for shapes without memory. A later process runs it as
// it was compiled, without tilings on the host.
func ExampleCompiler() {
	dev, err := cpu.New(cpu.WithWorkers(2))
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	data, err := compileResidual(dev)
	if err != nil {
		log.Fatal(err)
	}
	f, err := atb.DecodeCompiled(data) // os.ReadFile of what was os.WriteFile
	if err != nil {
		log.Fatal(err)
	}
	c, err := atb.NewContext(dev, atb.WithCompiled(f))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	g, err := residual()
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	x, err := atb.FromSlice(c, []float32{1, 1, -1, 1}, 1, 4)
	if err != nil {
		log.Fatal(err)
	}
	gamma, err := atb.FromSlice(c, []float32{1, 2, 3, 4}, 4)
	if err != nil {
		log.Fatal(err)
	}
	y, err := atb.NewTensor(c, x.Desc)
	if err != nil {
		log.Fatal(err)
	}
	pack := atb.VariantPack{In: []atb.Tensor{x, gamma}, Out: []atb.Tensor{y}}
	size, err := g.Setup(pack, c)
	if err != nil {
		log.Fatal(err)
	}
	ws, err := c.Workspace(size)
	if err != nil {
		log.Fatal(err)
	}
	if err := g.Execute(pack, ws, c); err != nil {
		log.Fatal(err)
	}
	got, err := atb.ToSlice[float32](context.Background(), c, y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f under %s, %d tilings on the host\n", got, c.Policy(), c.Stats().HostTilings)
	// Output: [2.00 3.00 -4.00 5.00] under device-sink, 0 tilings on the host
}

// residual is y = x + norm(x) * gamma.
func residual() (*atb.Op, error) {
	return atb.BuildGraph("residual", []string{"x", "gamma"}, []string{"y"}).
		AddSpec(norm.RMS(norm.Plain, 1e-5), []string{"x", "gamma"}, []string{"normed"}).
		AddSpec(elementwise.Of(elementwise.Add), []string{"x", "normed"}, []string{"y"}).
		Build()
}

// compileResidual compiles residual for one row of 4.
func compileResidual(dev *cpu.Device) ([]byte, error) {
	c, err := atb.NewContext(dev)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	g, err := residual()
	if err != nil {
		return nil, err
	}
	defer g.Close()
	x, gamma := atb.Of(atb.Float32, 1, 4), atb.Of(atb.Float32, 4)
	pack := atb.VariantPack{In: []atb.Tensor{{Desc: x}, {Desc: gamma}}, Out: []atb.Tensor{{Desc: x}}}
	if _, err := g.Setup(pack, c); err != nil {
		return nil, err
	}
	compiler, err := atb.NewCompiler(c, atb.CompileOptions{})
	if err != nil {
		return nil, err
	}
	if err := compiler.Add(g); err != nil {
		return nil, err
	}
	return compiler.File().Encode()
}
