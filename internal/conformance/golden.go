package conformance

import (
	"fmt"
	"strconv"
	"strings"

	"goatb/internal/conformance/reference"
	"goatb/tensor"
)

// Tensor is a tensor in host memory.
type Tensor = reference.Tensor

// golden is a golden case: a row with its data.
type golden struct {
	row Row
	in  []Tensor
	// out holds the expected outputs by position, tolerance T of each.
	out       []Tensor
	tolerance []float64
	// alias maps an output to the input whose memory it is.
	alias map[int]int
	// inPlace says that the expected outputs are the inputs after execution.
	inPlace bool
	// reshaped says that the row's text does not describe the tensors.
	reshaped bool
	ranks    bool
}

// readGolden reads a golden case.
func readGolden(path string) (*golden, error) {
	f, err := tensor.OpenSafetensors(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	meta := f.Metadata()
	g := &golden{row: Row{Suite: meta["Suite"], fields: meta}, alias: map[int]int{}}
	if meta["OpName"] == "" {
		return nil, fmt.Errorf("%s: no metadata of a golden case", path)
	}
	if g.row.Index, err = strconv.Atoi(meta["Row"]); err != nil {
		return nil, fmt.Errorf("%s: row: %w", path, err)
	}
	if meta["RankSize"] != "" {
		g.ranks = true
		return g, nil
	}
	if g.in, err = operandsOf(f, "in"); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if g.out, err = operandsOf(f, "out"); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := g.readRules(meta); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return g, nil
}

// operandsOf copies the tensors name0, name1, ... out of a file.
func operandsOf(f *tensor.File, name string) ([]Tensor, error) {
	var ts []Tensor
	for {
		e := f.Entry(name + strconv.Itoa(len(ts)))
		if e == nil {
			return ts, nil
		}
		t := Tensor{Desc: e.Desc}
		if t.Desc.Empty() {
			t.Desc.Shape = tensor.Shape{}
			ts = append(ts, t)
			continue
		}
		t.Data = reference.Bytes(t.Desc.Bytes())
		if copy(t.Data, e.Data) != len(t.Data) {
			return nil, fmt.Errorf("%s%d: want %d bytes, got %d", name, len(ts), len(t.Data), len(e.Data))
		}
		ts = append(ts, t)
	}
}

// readRules reads layouts, aliases and tolerances from the metadata.
func (g *golden) readRules(meta map[string]string) error {
	formats := list(meta["InFormat"], len(g.in))
	for i := range g.in {
		if formats[i] == "" {
			continue
		}
		var err error
		if g.in[i].Desc.Format, err = tensor.ParseFormat(formats[i]); err != nil {
			return err
		}
	}
	g.inPlace = meta["InPlace"] == "1"
	for pair := range strings.SplitSeq(meta["OutAlias"], ";") {
		out, in, ok := strings.Cut(pair, ":")
		if !ok {
			continue
		}
		o, errOut := strconv.Atoi(out)
		i, errIn := strconv.Atoi(in)
		if errOut != nil || errIn != nil || i < 0 || i >= len(g.in) || o < 0 {
			return fmt.Errorf("alias %q", pair)
		}
		g.alias[o] = i
	}
	for text := range strings.SplitSeq(meta["Tolerance"], ",") {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("tolerance: %w", err)
		}
		g.tolerance = append(g.tolerance, v)
	}
	if len(g.tolerance) != len(g.out) {
		return fmt.Errorf("%d tolerances for %d outputs", len(g.tolerance), len(g.out))
	}
	g.reshaped = meta["Replaced"] != "" || meta["TestType"] == generalization
	return nil
}

// generalization is the test type whose outputs are what InferShape returns.
const generalization = "Generalization"
