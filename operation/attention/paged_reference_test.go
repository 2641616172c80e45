package attention

import "math"

// reference computes the output in float64 by the formula.
func (c *pagedCase) reference() []float64 {
	p := &c.spec
	out := make([]float64, c.tokens*int64(p.HeadNum)*c.dv)
	if p.compress() {
		for s := range c.contexts {
			kv := int64(s) % p.kvHeads()
			group := int64(p.HeadNum) / p.kvHeads()
			for h := kv * group; h < (kv+1)*group; h++ {
				c.row(out, int64(s), int64(s)/p.kvHeads(), 0, h)
			}
		}
		return out
	}
	token := int64(0)
	for s := range c.contexts {
		n := int64(1)
		if p.spec() {
			n = c.qLens[s]
		}
		for r := range n {
			for h := range int64(p.HeadNum) {
				c.row(out, int64(s), token, c.contexts[s]-n+r, h)
			}
			token++
		}
	}
	return out
}

// row computes one head of one query row of sequence s.
func (c *pagedCase) row(out []float64, s, token, position, h int64) {
	p := &c.spec
	kv := h / (int64(p.HeadNum) / p.kvHeads())
	if p.BatchRunStatusEnable && c.status[s] == 0 {
		return
	}
	scale := float64(p.QKScale)
	if p.ScaleType == ScaleLogN {
		scale *= c.values["logN"][s]
	}
	scores := make([]float64, c.contexts[s])
	for j := range scores {
		for i := range c.dk {
			scores[j] += c.values["query"][(token*int64(p.HeadNum)+h)*c.dk+i] * c.cached("kCache", "kDescale", "kOffset", c.dk, s, kv, int64(j), i)
		}
		if p.CompressType == PagedCompressKVHeadRope {
			scores[j] += c.values["razorOffset"][c.block(s, int64(j))*c.bs+int64(j)%c.bs]
		}
		if p.int8All() {
			scores[j] *= c.values["kDescale"][h]
		}
		scores[j] = scores[j]*scale + c.maskAt(s, token, position, h, int64(j))
	}
	weights, sum := c.weights(scores, h)
	o := out[(token*int64(p.HeadNum)+h)*c.dv:][:c.dv]
	for j, w := range weights {
		for i := range o {
			if w != 0 {
				o[i] += w / sum * c.valueOf(s, kv, h, int64(j), int64(i))
			}
		}
	}
}

// weights gives the exponentials, rounded where the parameters say so, and the
// sum of the unrounded ones.
func (c *pagedCase) weights(scores []float64, h int64) ([]float64, float64) {
	top := math.Inf(-1)
	for _, v := range scores {
		top = math.Max(top, v)
	}
	w, sum := make([]float64, len(scores)), 0.0
	if math.IsInf(top, -1) {
		return w, 1
	}
	for j, v := range scores {
		w[j] = math.Exp(v - top)
		sum += w[j]
	}
	if c.spec.int8All() {
		for from := 0; from < len(w); from += 128 {
			block := w[from:min(from+128, len(w))]
			unit, levels, back := c.highest(w, from), 127.0, 1/127.0
			if c.spec.QuantType == QuantOffline {
				levels, back = c.values["pScale"][h], 1
			}
			for j := range block {
				if unit > 0 {
					block[j] = math.Max(-128, math.Min(127, math.RoundToEven(block[j]/unit*levels))) * unit * back
				}
			}
		}
	}
	return w, sum
}

// highest is what a block's exponentials are relative to: its own largest,
// with QuantOffline the largest since the start of the part of 512 positions.
func (c *pagedCase) highest(w []float64, from int) float64 {
	first := from
	if c.spec.QuantType == QuantOffline {
		first = from / 512 * 512
	}
	top := 0.0
	for _, v := range w[first:min(from+128, len(w))] {
		top = math.Max(top, v)
	}
	return top
}

func (c *pagedCase) valueOf(s, kv, h, j, i int64) float64 {
	name := "vCache"
	if c.spec.mla() {
		name = "kCache"
	}
	v := c.cached(name, "vDescale", "vOffset", c.dv, s, kv, j, i)
	if c.spec.int8All() {
		v *= c.values["vDescale"][h]
	}
	return v
}

func (c *pagedCase) block(s, j int64) int64 {
	return int64(c.values["blockTables"][s*c.columns+j/c.bs])
}

// cached reads channel i of position j, widened by channel where it is int8.
func (c *pagedCase) cached(name, scale, offset string, width, s, kv, j, i int64) float64 {
	p := &c.spec
	block, slot, head, heads := c.block(s, j), j%c.bs, kv, p.kvHeads()
	if p.compress() {
		head, heads = 0, 1
	}
	size := width
	if name == "kCache" {
		size = c.dk
	}
	at := ((block*c.bs+slot)*heads + head) * size
	if p.InputLayout == LayoutBNSD {
		at = ((block*heads+head)*c.bs + slot) * size
	}
	v := c.values[name][at+i]
	if p.QuantType == QuantDequantFusion {
		if p.HasQuantOffset {
			v += c.values[offset][kv*width+i]
		}
		v *= c.values[scale][kv*width+i]
	}
	return v
}

func (c *pagedCase) maskAt(s, token, position, h, j int64) float64 {
	p := &c.spec
	if !p.masked() {
		return 0
	}
	if p.compress() {
		s /= p.kvHeads()
	}
	shape := c.maskShape
	columns := shape[len(shape)-1]
	pick := func(axis int, i int64) int64 {
		if shape[axis] == 1 {
			return 0
		}
		return i
	}
	var r int64
	switch {
	case p.spec() && p.MaskType == PagedMaskSpec:
		r = token
	case p.spec() && len(shape) == 2:
		r = position
	case p.spec():
		r = pick(0, s)*shape[1] + pick(1, position)
	case len(shape) == 2:
		r = pick(0, s)
	default:
		r = pick(0, s)*shape[1] + pick(1, h)
	}
	return c.values["mask"][r*columns+j]
}
