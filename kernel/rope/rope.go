package rope

import (
	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Params say how heads are turned.
type Params struct {
	// Coeff is the number of half groups of a head, even and a divisor of the
	// width of the cosines.
	Coeff int64
	// Head is the width of a head: at least the width of the cosines.
	Head int64
}

// Operands of Apply; inputs first.
const (
	opQ = iota
	opK
	opCos
	opSin
	opOutQ
	opOutK
)

// Apply turns queries and keys.
//
// In: q [tokens..., heads·Head] in any shape whose rows are tokens, k likewise
// with its own number of heads, cos and sin [tokens, width]. Out: q and k
// turned, which may be the memory of the inputs. q and k have one float type,
// cos and sin too.
//
// Where all are f16 the arithmetic is that of f16: every product is rounded,
// then the sum. Otherwise it is float32 and the result is rounded once.
var Apply = kernel.Table{apply}

type tiling struct {
	Tokens      int64
	Heads       [2]int64
	Head, Width int64
	Group       int64
	// Alike is the number of heads that are turned as one vector.
	Alike        int64
	Steps        bool
	DType, Angle tensor.DType
}

// bufferElements is the scratch of a block: heads that are alike and their cosines
// and sines.
func bufferElements(head, width, alike int64) int64 { return (head + 2*width) * alike }

// alike is the number of heads that are turned as one vector, their angles repeated:
// short ones of neighbours that lie together, up to a vector of a whole register.
// Angles that were repeated for several registers are not there when they are read.
func alike(p *kernel.Problem, r Params) int64 {
	const register = 16
	if width := p.In[opCos].Dim(-1); width == r.Head && width == r.Coeff {
		heads := p.In[opQ].Numel() / (p.In[opCos].Dim(0) * r.Head)
		return max(1, min(register/width, heads))
	}
	return 1
}

var apply = kernel.Define(kernel.Def[Params, tiling]{
	Name:     "rope/go",
	Class:    device.Vector,
	InPlace:  true,
	Pairs:    [][2]int{{0, opQ}, {1, opK}},
	Supports: supports,
	Scratch: func(p *kernel.Problem, r Params) int64 {
		return int64(max(p.Machine.Cores, 1)) * 4 * bufferElements(r.Head, p.In[opCos].Dim(-1), alike(p, r))
	},
	Tile: func(p *kernel.Problem, r Params, t *tiling, _ []int64) (kernel.Grid, error) {
		tokens, width := p.In[opCos].Dim(0), p.In[opCos].Dim(-1)
		*t = tiling{
			Tokens: tokens, Head: r.Head, Width: width, Group: 2 * (width / r.Coeff),
			Heads: [2]int64{p.In[opQ].Numel() / (tokens * r.Head), p.In[opK].Numel() / (tokens * r.Head)},
			Alike: alike(p, r), DType: p.In[opQ].DType, Angle: p.In[opCos].DType,
		}
		t.Steps = t.DType == tensor.Float16 && t.Angle == tensor.Float16
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.units(), float64(t.units()*t.Head)*t.nanos())}, nil
	},
	Run: run,
	Cost: func(t *tiling, _ []int64) (flops, bytes int64) {
		n := t.units() * t.Head
		return 3 * t.units() * t.Width, 2*n*t.DType.Size() + 2*t.Tokens*t.Width*t.Angle.Size()
	},
})

// units is the number of heads of all tokens: what blocks share.
func (t *tiling) units() int64 { return t.Tokens * (t.Heads[0] + t.Heads[1]) }

// nanos is the time of an element.
func (t *tiling) nanos() float64 {
	switch {
	case t.Steps:
		return kernel.Nanos(0.4, 5)
	case t.DType == tensor.Float32:
		return kernel.Nanos(0.15, 0.8)
	}
	return kernel.Nanos(0.3, 2.5)
}

func isFloat(t tensor.DType) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

func supports(p *kernel.Problem, r Params) error {
	if len(p.In) != 4 || len(p.Out) != 2 {
		return status.Errorf(status.ErrInternal, "want 4 inputs and 2 outputs, got %d and %d", len(p.In), len(p.Out))
	}
	q, k, cos, sin := &p.In[opQ], &p.In[opK], &p.In[opCos], &p.In[opSin]
	if !isFloat(q.DType) || k.DType != q.DType || !isFloat(cos.DType) || sin.DType != cos.DType {
		return status.Errorf(status.ErrInvalidParam, "want q and k of one float type and cos and sin of one, got %s, %s, %s and %s", q, k, cos, sin)
	}
	if cos.Rank() != 2 || cos.Shape != sin.Shape {
		return status.Errorf(status.ErrInvalidParam, "want cos and sin of one shape [tokens, width], got %s and %s", cos, sin)
	}
	tokens, width := cos.Dim(0), cos.Dim(1)
	if r.Coeff < 2 || r.Coeff%2 != 0 || width%r.Coeff != 0 || r.Head < width {
		return status.Errorf(status.ErrInvalidParam, "want an even coefficient that divides the width %d and heads at least as wide, got %d and %d", width, r.Coeff, r.Head)
	}
	for i := range 2 {
		in, out := &p.In[i], &p.Out[i]
		if in.Numel() == 0 || in.Numel()%(tokens*r.Head) != 0 {
			return status.Errorf(status.ErrInvalidParam, "want heads of %d for %d tokens, got %s", r.Head, tokens, in)
		}
		if out.DType != in.DType || out.Numel() != in.Numel() {
			return status.Errorf(status.ErrInvalidParam, "want an output like %s, got %s", in, out)
		}
	}
	return nil
}

func run(a *kernel.Args, block int, t *tiling, _ []int64) error {
	size, width := bufferElements(t.Head, t.Width, t.Alike), t.Width*t.Alike
	buf := device.View[float32](a.Scratch.Bytes())[int64(block)*size:][:size]
	head, buf := buf[:size-2*width], buf[size-2*width:]
	perToken := t.Heads[0] + t.Heads[1]
	lo, hi := kernel.Share(t.units(), block, a.Blocks)
	for lo < hi {
		token, first := int64(0), lo
		if lo >= perToken {
			token, first = lo/perToken, lo%perToken
		}
		end := min(perToken, first+hi-lo)
		lo += end - first
		cos, sin := t.angles(buf[:width], a.Mem(opCos), token), t.angles(buf[width:], a.Mem(opSin), token)
		for i, heads := range t.Heads {
			if from, to := max(first, 0), min(end, heads); from < to {
				t.turn(a.Mem(opOutQ+i), a.Mem(opQ+i), head, cos, sin, token*heads+from, token*heads+to)
			}
			first, end = first-heads, end-heads
		}
	}
	return nil
}

// angles is the cosines or sines of a token, for as many heads as are alike: in place
// or in buf.
func (t *tiling) angles(buf []float32, mem []byte, token int64) []float32 {
	angles := kernel.Floats(buf, mem[token*t.Width*t.Angle.Size():], t.Angle, t.Width)
	if t.Alike == 1 {
		return angles
	}
	return repeated(buf, angles)
}

// repeated fills buf with angles, one time after the other; they may be its front.
func repeated(buf, angles []float32) []float32 {
	for n := copy(buf, angles); n < len(buf); {
		n += copy(buf[n:], buf[:n])
	}
	return buf
}

// turn turns the heads [from, to) of src by one token's angles, group by group.
func (t *tiling) turn(dst, src []byte, buf, cos, sin []float32, from, to int64) {
	e, _ := floats.Of(t.DType)
	size, head := t.DType.Size(), t.Head*t.DType.Size()
	in, out := src[from*head:to*head], dst[from*head:to*head]
	rotation, group := t.rotation()
	if t.Alike > 1 {
		rest := to - from
		if rest >= t.Alike {
			n := rest / t.Alike
			whole := n * t.Alike * head
			floats.Rotate(rotation, e, out[:whole], in[:whole], int(n), int(t.Alike*t.Head), cos, sin, buf)
			out, in, rest = out[whole:], in[whole:], rest%t.Alike
		}
		if width := rest * t.Head; width > 0 {
			floats.Rotate(rotation, e, out, in, 1, int(width), cos[:width], sin[:width], buf)
		}
		return
	}
	for g := int64(0); g < t.Width; g += group {
		floats.Rotate(rotation, e, out[g*size:], in[g*size:], int(to-from), int(t.Head), cos[g:g+group], sin[g:g+group], buf)
	}
	if turned := t.Width * size; turned < head {
		for at := turned; at < int64(len(in)); at += head {
			copy(out[at:at+head-turned], in[at:at+head-turned])
		}
	}
}

// rotation returns how pairs are turned, and by how many elements at a time:
// neighbours need no groups.
func (t *tiling) rotation() (r floats.Rotation, group int64) {
	switch {
	case t.Group == 2 && t.Steps:
		return floats.PairsSteps, t.Width
	case t.Group == 2:
		return floats.Pairs, t.Width
	case t.Steps:
		return floats.HalvesSteps, t.Group
	}
	return floats.Halves, t.Group
}
