package main

import (
	"errors"
	"fmt"
	"io"

	"goatb/atb"
	"goatb/device"
	"goatb/internal/boundedfile"
	"goatb/operation/catalog"
	"goatb/tensor"
)

// graphStreams is the number of streams that graph files may use.
const graphStreams = 8

// readGraph reads a graph file.
func readGraph(file string) (*catalog.GraphFile, error) {
	data, err := boundedfile.Read(file, boundedfile.Text)
	if err != nil {
		return nil, err
	}
	f, err := catalog.ReadGraph(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return f, nil
}

// warnUnused tells which inputs of a graph file no node uses.
func warnUnused(w io.Writer, file string, op *atb.Op) {
	for _, name := range op.UnusedInputs() {
		fmt.Fprintf(w, "atb: warning: %s: no node uses input %s\n", file, name)
	}
}

// loadGraph reads a graph file whose inputs have descriptors, builds it and
// infers its outputs. The device closes the events that order its streams.
func loadGraph(dev device.Device, file string) (*atb.Op, atb.VariantPack, error) {
	f, err := readGraph(file)
	if err != nil {
		return nil, atb.VariantPack{}, err
	}
	op, pack, err := buildGraph(dev, f)
	if err != nil {
		return nil, atb.VariantPack{}, fmt.Errorf("%s: %w", file, err)
	}
	return op, pack, nil
}

// buildGraph builds a graph and describes its operands.
func buildGraph(dev device.Device, f *catalog.GraphFile) (*atb.Op, atb.VariantPack, error) {
	op, err := f.BuildOrdered(dev.NewEvent)
	if err != nil {
		return nil, atb.VariantPack{}, err
	}
	pack, err := describedPack(f, op)
	if err != nil {
		return nil, atb.VariantPack{}, errors.Join(err, op.Close())
	}
	return op, pack, nil
}

// describedPack makes a pack of descriptors and host values, without memory.
func describedPack(f *catalog.GraphFile, op *atb.Op) (atb.VariantPack, error) {
	pack := atb.VariantPack{In: make([]atb.Tensor, len(f.Inputs))}
	descs := make([]atb.Desc, len(f.Inputs))
	for i := range f.Inputs {
		e := &f.Inputs[i]
		d, ok, err := e.Desc()
		if err == nil && !ok {
			err = fmt.Errorf("input %q: want dtype and shape", e.Name)
		}
		if err != nil {
			return pack, err
		}
		descs[i], pack.In[i].Desc = d, d
		if e.Values == nil {
			continue
		}
		if pack.In[i].Host, err = hostValues(d, e.Values); err != nil {
			return pack, fmt.Errorf("input %q: %w", e.Name, err)
		}
	}
	outs, err := op.InferShape(descs)
	if err != nil {
		return pack, err
	}
	for _, d := range outs {
		pack.Out = append(pack.Out, atb.Tensor{Desc: d})
	}
	return pack, nil
}

// hostValues writes integers as a tensor's bytes.
func hostValues(d atb.Desc, v []int64) ([]byte, error) {
	if int64(len(v)) != d.Numel() {
		return nil, fmt.Errorf("want %d values for %s, got %d", d.Numel(), d, len(v))
	}
	b := make([]byte, d.Bytes())
	return b, tensor.Convert(b, d.DType, device.BytesOf(v), tensor.Int64)
}
