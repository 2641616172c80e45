package peers

import "unsafe"

// OpenBLAS is the library of that name. Its methods may be called by one
// goroutine at a time.
type OpenBLAS struct {
	// Core is the processor type that the library picked for itself.
	Core string

	sgemm      func(order, ta, tb, m, n, k int32, alpha float32, a unsafe.Pointer, lda int32, b unsafe.Pointer, ldb int32, beta float32, c unsafe.Pointer, ldc int32)
	sgemv      func(order, ta, m, n int32, alpha float32, a unsafe.Pointer, lda int32, x unsafe.Pointer, incX int32, beta float32, y unsafe.Pointer, incY int32)
	setThreads func(n int32)
}

// Values of the C interface.
const (
	rowMajor = 101
	noTrans  = 111
	trans    = 112
)

// LoadOpenBLAS loads the library.
func LoadOpenBLAS() (*OpenBLAS, error) {
	lib, err := load("libopenblas.so.0")
	if err != nil {
		return nil, err
	}
	o := &OpenBLAS{}
	var core func() string
	err = bind(lib, map[string]any{
		"cblas_sgemm": &o.sgemm, "cblas_sgemv": &o.sgemv,
		"openblas_set_num_threads": &o.setThreads, "openblas_get_corename": &core,
	})
	if err != nil {
		return nil, err
	}
	o.Core = core()
	return o, nil
}

// SetThreads sets the number of threads.
func (o *OpenBLAS) SetThreads(n int) { o.setThreads(int32(n)) }

// MatMul computes c[m,n] = a[m,k] b, where b is [k,n] or, transposed, [n,k].
func (o *OpenBLAS) MatMul(c, a, b []float32, m, n, k int, transB bool) {
	t, ldb := int32(noTrans), n
	if transB {
		t, ldb = trans, k
	}
	o.sgemm(rowMajor, noTrans, t, int32(m), int32(n), int32(k), 1, ptr(a), int32(k), ptr(b), int32(ldb), 0, ptr(c), int32(n))
}

// MatVec computes y[n] = w[n,k] x[k].
func (o *OpenBLAS) MatVec(y, w, x []float32, n, k int) {
	o.sgemv(rowMajor, noTrans, int32(n), int32(k), 1, ptr(w), int32(k), ptr(x), 1, 0, ptr(y), 1)
}

func ptr[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
