package tensor

import (
	"strconv"

	"goatb/status"
)

// Format is the layout of a tensor's elements. The zero Format is ND.
type Format uint8

// Layouts. Operations compute on ND, FractalNZ and Panels; the others are labels
// that operation tables refuse.
const (
	// ND is row-major and contiguous.
	ND Format = iota
	// FractalNZ is the blocked weight layout [b, N/c, M, c] with c = 32 for
	// one-byte elements and 16 otherwise: element (m, n) lies at [n/c][m][n%c].
	// N is rounded up to c and M to 16 with zeros; see PackNZ.
	FractalNZ
	FormatUndefined
	NCHW
	NHWC
	NC1HWC0
	FractalZ
	NC1HWC0C04
	HWCN
	NDHWC
	NCDHW
	NDC1HWC0
	FractalZ3D
	// Panels is the layout of constant weights [n, k] or [b, n, k] that the
	// embedded device multiplies with at full speed; ATB does not have it. A
	// panel holds 32 rows of the matrix, that is 32 columns of the product, with
	// k running inside: element (r, k) of a matrix lies in panel r/32 at
	//
	//	k/s*32*s + r%32*s + k%s        s = PanelStep of the type
	//
	// Both r and k are rounded up with zeros. Behind each int8 panel there are 32
	// int32: 128 times the sum of each of its rows. A tensor of this layout is
	// longer than its elements and can be neither reshaped nor cut.
	Panels
	numFormats
)

var formatInfo = [numFormats]struct {
	name string
	acl  int
}{
	ND:              {"nd", 2},
	FractalNZ:       {"fractal_nz", 29},
	FormatUndefined: {"undefined", -1},
	NCHW:            {"nchw", 0},
	NHWC:            {"nhwc", 1},
	NC1HWC0:         {"nc1hwc0", 3},
	FractalZ:        {"fractal_z", 4},
	NC1HWC0C04:      {"nc1hwc0_c04", 12},
	HWCN:            {"hwcn", 16},
	NDHWC:           {"ndhwc", 27},
	NCDHW:           {"ncdhw", 30},
	NDC1HWC0:        {"ndc1hwc0", 32},
	FractalZ3D:      {"fractal_z_3d", 33},
	Panels:          {"panels", -1},
}

// String returns the layout's lower-case name.
func (f Format) String() string {
	if f >= numFormats {
		return "format(" + strconv.Itoa(int(f)) + ")"
	}
	return formatInfo[f].name
}

// ACL returns ATB's numeric id of the layout, -1 where it has none.
func (f Format) ACL() int {
	if f >= numFormats {
		return -1
	}
	return formatInfo[f].acl
}

// ParseFormat reads a lower-case layout name. Any other name is
// ErrInvalidParam.
func ParseFormat(name string) (Format, error) {
	for f := range numFormats {
		if formatInfo[f].name == name {
			return f, nil
		}
	}
	return FormatUndefined, status.Errorf(status.ErrInvalidParam, "unknown format %.64q", name)
}

// MarshalText writes the layout's name.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name as ParseFormat does.
func (f *Format) UnmarshalText(b []byte) (err error) {
	if err := status.Given("unmarshal format", "f", f); err != nil {
		return err
	}
	*f, err = ParseFormat(string(b))
	return err
}
