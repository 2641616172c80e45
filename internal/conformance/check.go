package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"goatb/tensor"
)

// DefaultMaxBytes is the size up to which rows without a golden case are
// executed.
const DefaultMaxBytes = 16 << 20

// Options choose what a run does.
type Options struct {
	// Engine makes the operations.
	Engine Engine
	// MaxBytes limits the operands of a row that is executed against the
	// reference; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Ops keeps the named operations, with or without "Operation", whatever
	// the case of the letters; none keeps all.
	Ops []string
	// Case keeps the cases whose suite, number or name contains it.
	Case string
	// Stale lists rows to leave out.
	Stale Stale
	// Each, when set, sees every result as it comes.
	Each func(CaseResult)
}

// Check runs the suites (.csv) and golden cases (.safetensors) at the given
// paths; folders are walked. Errors are about the paths, which must have cases,
// and the filters, each of which must choose some (NoMatchError): a case that
// fails is a result, and so is a file in a folder that cannot be read.
func Check(paths []string, o Options) (*Results, error) {
	if o.Engine == nil {
		return nil, errors.New("conformance: no engine")
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	files, err := filesAt(paths)
	if err != nil {
		return nil, err
	}
	all, err := sources(paths, files)
	if err != nil {
		return nil, err
	}
	r := &run{o: &o, filter: filter{o.Ops, o.Case}, results: &Results{Ops: []OpTotals{}, Cases: []CaseResult{}}}
	if err := r.filter.check(names(all)); err != nil {
		return nil, err
	}
	for i := range all {
		switch s := &all[i]; {
		case s.err != nil:
			r.done(CaseResult{Path: s.path, Status: Failed, Reason: s.err.Error()}, time.Now())
		case s.golden():
			r.goldenCase(s.path)
		default:
			r.suite(s)
		}
	}
	return r.results, nil
}

// filesAt lists the files of a run in order, each once.
func filesAt(paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, errors.New("conformance: want at least one path")
	}
	var files []string
	seen := map[string]bool{}
	for _, p := range paths {
		err := filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				return nil
			case seen[filepath.Clean(path)]:
				return nil
			case strings.HasSuffix(path, ".csv"), strings.HasSuffix(path, ".safetensors"):
				seen[filepath.Clean(path)] = true
				files = append(files, path)
			case path == p:
				return fmt.Errorf("conformance: %s is neither .csv nor .safetensors", path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// run is a run of Check.
type run struct {
	o       *Options
	filter  filter
	results *Results
}

// suite runs the rows of a file.
func (r *run) suite(s *source) {
	stale := r.o.Stale.of(s.rows)
	for i := range s.rows {
		if r.filter.wants(s.rows[i].Op(), s.rows[i].text()) {
			r.row(s.path, &s.rows[i], stale[i])
		}
	}
}

// done counts a result.
func (r *run) done(c CaseResult, since time.Time) {
	c.TimeNS = time.Since(since).Nanoseconds()
	r.results.add(c)
	if r.o.Each != nil {
		r.o.Each(c)
	}
}

// begin starts a result, and says why the row does not run, if it does not.
func (r *run) begin(path string, row *Row) (CaseResult, string) {
	res := CaseResult{Path: path, Row: row.Index, Case: row.Field("CaseNum"), Op: row.Op(), Expected: row.Field("ExpectedError"), Status: Skipped}
	switch {
	case row.Dirty != "":
		return res, "not a row: " + row.Dirty
	case !row.forBoard():
		return res, fmt.Sprintf("for other boards (%s), not %s", row.Field("SocVersion"), board)
	case !r.o.Engine.Has(row.Op()):
		return res, row.Op() + " is not in the catalog yet: the operation comes later"
	}
	return res, ""
}

// row runs a row of a suite, unless it is stale for a reason.
func (r *run) row(path string, row *Row, stale string) {
	since := time.Now()
	res, skip := r.begin(path, row)
	if skip == "" && stale != "" {
		skip = "stale row: " + stale
	}
	defer func() { r.done(res, since) }()
	if res.Reason = skip; skip != "" {
		return
	}
	want, err := parseExpectation(row.Field("ExpectedError"))
	in, errIn := newInputs(row)
	out, errOut := row.operands("Out")
	generalized := row.Field("TestType") == generalization
	if generalized {
		out, errOut = nil, nil
	}
	if err = errors.Join(err, errIn, errOut); err != nil {
		res.Reason = "not a row: " + err.Error()
		return
	}
	a := &attempt{
		engine: r.o.Engine, maxBytes: r.o.MaxBytes, res: &res, want: want,
		op: row.Op(), param: row.params(),
		in: in.descs, out: out, tensor: in.tensor,
		inferred: generalized || in.ownOutputs && in.succeeds,
	}
	a.run()
}

// goldenCase runs a golden case.
func (r *run) goldenCase(path string) {
	since := time.Now()
	g, err := readGolden(path)
	if err != nil {
		r.done(CaseResult{Path: path, Status: Failed, Reason: err.Error()}, since)
		return
	}
	if !r.filter.wants(g.row.Op(), g.row.text()) {
		return
	}
	res, skip := r.begin(path, &g.row)
	defer func() { r.done(res, since) }()
	if skip == "" && g.ranks {
		skip = "a case of several ranks: collective operations come later"
	}
	if res.Reason = skip; skip != "" {
		return
	}
	out, inferred := g.outputs()
	a := &attempt{
		engine: r.o.Engine, maxBytes: r.o.MaxBytes, res: &res, want: expectation{text: res.Expected},
		op: g.row.Op(), param: g.row.params(),
		out: out, inferred: inferred, golden: g,
		tensor: func(i int) Tensor { return g.in[i] },
	}
	for i := range g.in {
		a.in = append(a.in, g.in[i].Desc)
	}
	a.run()
}

// outputs returns the row's outputs, and true where they do not describe what
// the case holds and InferShape has to say it.
func (g *golden) outputs() ([]tensor.Desc, bool) {
	out, err := g.row.operands("Out")
	if err != nil || g.reshaped {
		return nil, true
	}
	for i := range g.out {
		if !g.inPlace && (i >= len(out) || out[i].Shape != g.out[i].Desc.Shape) {
			return nil, true
		}
	}
	return out, false
}
