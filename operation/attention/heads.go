package attention

import (
	"strconv"

	"goatb/status"
)

// InputLayout is the order of the dimensions of queries, keys and values. Its
// JSON form is ATB's number.
type InputLayout int

// Input layouts.
const (
	// LayoutBSND is [tokens, heads, size]: the heads of a token side by side.
	LayoutBSND InputLayout = iota
	// LayoutBNSD is [batch, heads, tokens, size]: the tokens of a head side by side.
	LayoutBNSD
)

// String returns the layout's name.
func (l InputLayout) String() string { return enumName(int(l), "BSND", "BNSD") }

// ScaleType tells what scales the scores. Its JSON form is ATB's number.
type ScaleType int

// Scale types.
const (
	// ScaleTOR is the constant qkScale.
	ScaleTOR ScaleType = iota
	// ScaleLogN multiplies qkScale by a factor read from the last input.
	ScaleLogN
)

// String returns the scale type's name.
func (s ScaleType) String() string { return enumName(int(s), "TOR", "LOGN") }

// QuantType tells which operands are int8. Its JSON form is ATB's number.
type QuantType int

// Quantisation types.
const (
	// QuantNone has float operands.
	QuantNone QuantType = iota
	// QuantDequantFusion has int8 keys and values that are widened when read.
	QuantDequantFusion
	// QuantOffline has int8 queries, keys and values, and probabilities
	// rounded to int8 with a given scale.
	QuantOffline
	// QuantOnline has int8 queries, keys and values, and probabilities
	// rounded to int8 with the scale of their row's largest.
	QuantOnline
)

// String returns the quantisation type's name.
func (q QuantType) String() string {
	return enumName(int(q), "NONE", "DEQUANT_FUSION", "QUANT_OFFLINE", "QUANT_ONLINE")
}

// enumName names value v of an enumeration, or gives the number.
func enumName(v int, names ...string) string {
	if v < 0 || v >= len(names) {
		return strconv.Itoa(v)
	}
	return names[v]
}

// keyHeads returns the number of key and value heads: kvHeadNum, or headNum
// where that is 0.
func keyHeads(headNum, kvHeadNum int) int {
	if kvHeadNum == 0 {
		return headNum
	}
	return kvHeadNum
}

// checkHeads checks the numbers of heads: every key head serves the same
// number of query heads.
func checkHeads(headNum, kvHeadNum int) error {
	if headNum <= 0 {
		return status.Errorf(status.ErrInvalidParam, "headNum: want at least 1, got %d", headNum)
	}
	if kvHeadNum < 0 {
		return status.Errorf(status.ErrInvalidParam, "kvHeadNum: want at least 0, got %d", kvHeadNum)
	}
	if kvHeadNum > 0 && headNum%kvHeadNum != 0 {
		return status.Errorf(status.ErrInvalidParam, "headNum: want a multiple of kvHeadNum %d, got %d", kvHeadNum, headNum)
	}
	return nil
}

// inRange checks that parameter `name` is one of the values 0 to top.
func inRange(name string, v, top int) error {
	if v < 0 || v > top {
		return status.Errorf(status.ErrInvalidParam, "%s: want 0 to %d, got %d", name, top, v)
	}
	return nil
}
