package attention

// The inputs of an attention kernel by position; absent ones are empty.
const (
	// InQuery, InKey and InValue are located by the strides of Params. Value
	// may be the same tensor as key.
	InQuery = iota
	InKey
	InValue
	// InMask is a bias tensor, located by Params.Mask.
	InMask
	// InSlopes holds one factor of the bias per head.
	InSlopes
	// InFactor holds factors of the scale, see Params.Factor.
	InFactor
	// InTable is int32[batch, columns]: the blocks of paged keys.
	InTable
	// InKeyScale, InValueScale and InProbScale are f32 per head, for Quant.
	InKeyScale
	InValueScale
	InProbScale
	// InNewKey and InNewValue hold the rows that are not yet in a ring cache.
	InNewKey
	InNewValue
	// NumIn is the number of inputs.
	NumIn
)

// Source tells where keys lie and which host values say how many there are.
type Source uint8

// Sources. The host values are in the order given.
const (
	// Tokens are keys beside the queries. Values: lengths [batch], or query
	// lengths and key lengths [2,batch].
	Tokens Source = iota
	// Cache is a contiguous cache. Values: all keys [batch], query lengths
	// [batch], layer [1], and with Params.Status the run status [batch].
	Cache
	// Paged is a cache of blocks. Values: query lengths [batch], key lengths
	// [batch].
	Paged
)

// Bias tells what is added to the scores.
type Bias uint8

// Biases.
const (
	// NoBias adds nothing.
	NoBias Bias = iota
	// MaskBias adds the mask's element of query row and key.
	MaskBias
	// Distance adds slope times a bias of the distance between query and key:
	// the mask's own element where the mask has one, the first column's entry
	// of that distance beyond it, and beyond the mask's side the distance
	// itself with the column's sign.
	Distance
	// RootDistance is Distance with the root of the distance beyond the side.
	RootDistance
	// Position adds slope times a bias of the key's position: the mask's own
	// element where the mask has one, the last row's entry beyond it, and
	// beyond the mask's side the last entry plus or minus the excess.
	Position
)

// Factor tells what multiplies the scale.
type Factor uint8

// Factors.
const (
	NoFactor Factor = iota
	// RowFactor is read at the query's position in its sequence.
	RowFactor
	// BatchFactor is read at the sequence's number.
	BatchFactor
)

// Quant tells how probabilities of int8 attention are rounded. The scores are
// multiplied with the head's key scale.
type Quant uint8

// Quantisations.
const (
	NoQuant Quant = iota
	// Online rounds p*127/max(p) to int8 and multiplies the result with
	// max(p)/127 and the head's value scale.
	Online
	// Offline rounds p*scale to int8, scale being the head's, and multiplies
	// the result with the head's value scale.
	Offline
)

// Strides locate the rows of an operand, in elements. The zero Batch of a
// query, an output or Tokens' keys says that sequences follow each other
// without padding.
type Strides struct{ Row, Head, Batch, Layer int64 }

// Mask locates a mask's elements: strides in elements, 0 along a dimension that
// is shared, and how many rows and columns there are. Block is the stride of
// groups of 16 columns where the mask is stored blocked, else 0.
type Mask struct{ Batch, Head, Row, Rows, Cols, Block int64 }

// Params are the parameters of an attention kernel.
type Params struct {
	Source          Source
	Heads, KeyHeads int64
	// KeySize and ValueSize are the sizes of a head.
	KeySize, ValueSize int64
	Batch              int64
	// Rows is the number of query rows: in all where sequences are not
	// padded, of a sequence otherwise.
	Rows int64
	// Slots is the number of keys that the operand holds: in all where
	// sequences are not padded, of a block of a paged cache, of a sequence
	// otherwise.
	Slots int64
	// Layers is the number of layers of a cache, 0 where it has no such
	// dimension; Blocks and Columns are the size of a paged cache and the
	// width of its table.
	Layers, Blocks, Columns int64

	Query, Key, Value, Out, NewKey, NewValue Strides

	// Ring says that position j of a Cache lies in slot j modulo Slots; NewKeys
	// says that the query rows' own keys are not in it yet.
	Ring, NewKeys bool
	// Status says that the host values hold run statuses: 0 skips a sequence
	// and gives zeros.
	Status bool

	QScale, QKScale float32
	// Clamp limits the products, ClampScaled says that they are scaled before.
	Clamp, ClampScaled bool
	ClampMin           float32
	ClampMax           float32
	Factor             Factor
	// FactorLen is the number of factors.
	FactorLen int64

	Bias Bias
	Mask Mask
	// ScaleBias says that the bias is scaled with the score; OneHides says that
	// the mask's value 1 stands for the lowest.
	ScaleBias, OneHides bool

	// Causal hides the keys behind the query's position, which is the number of
	// keys less the number of query rows plus the row. A positive Window hides
	// the keys that are Window or more before it.
	Causal bool
	Window int64

	Quant Quant
}

// group returns the number of query heads that share a key head.
func (a *Params) group() int64 { return a.Heads / a.KeyHeads }
