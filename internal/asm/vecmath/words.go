package vecmath

// WordFunc names a function of two arrays of integers, whose results wrap.
type WordFunc uint8

// Functions of integers.
const (
	AddWords WordFunc = iota
	SubWords
	MulWords
	numWordFuncs
)

// Number is the type of the elements that Greater compares.
type Number uint8

// Types of numbers.
const (
	Int8 Number = iota
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	numNumbers
)

// LogicFunc names a function of truth values: bytes that are 0 for false.
type LogicFunc uint8

// Functions of truth values.
const (
	And LogicFunc = iota
	Or
	numLogicFuncs
)

// Conversion names a conversion between arrays.
type Conversion uint8

// Conversions: to int32 from shorter integers, to int64 from int32 and uint32,
// back by leaving bits out, and from int32 to float32.
const (
	Int8ToInt32 Conversion = iota
	Uint8ToInt32
	Int16ToInt32
	Uint16ToInt32
	Int32ToInt64
	Uint32ToInt64
	Int64ToInt32
	Int32ToInt16
	Int32ToInt8
	Int32ToFloat32
	numConversions
)

// wordGroup is the number of elements that functions of integers do at a time;
// they leave the elements behind the last group to the caller and return how
// many they did.
const wordGroup = 32
