package roofline

import (
	"strings"
	"sync"
	"time"

	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
)

// Limits are the rates of a number of threads together.
type Limits struct {
	// Threads is the number of threads.
	Threads int
	// Peaks holds GFLOP/s (Gop/s for integers) of nothing but multiply-add
	// instructions, by data type: "f32" and, where the processor has the
	// instructions, "bf16" and "int8". It is empty where no loop is known for
	// the processor.
	Peaks map[string]float64
	// Read is GB/s of reading memory that no cache holds.
	Read float64
}

// window is the least time of one measurement of a limit.
const window = 20 * time.Millisecond

// MeasureLimits measures the limits of a number of threads: the best of a few
// rounds, since others can only take time away. mem is memory to read, larger
// than any cache.
func MeasureLimits(threads int, mem []byte) Limits {
	l := Limits{Threads: threads, Peaks: map[string]float64{}}
	for range 3 {
		for _, p := range gemm.Peaks(cpu.Detected()) {
			name, _, _ := strings.Cut(p.Name, "/")
			l.Peaks[name] = max(l.Peaks[name], peakRate(threads, p))
		}
		l.Read = max(l.Read, readRate(threads, mem))
	}
	return l
}

func peakRate(threads int, p gemm.Peak) float64 {
	const turns = 1000
	return together(threads, func(int) (work float64) {
		for start := time.Now(); time.Since(start) < window; {
			p.Run(turns)
			work += turns * float64(p.Ops)
		}
		return work
	})
}

// readRate reads mem once, each thread a part of its own.
func readRate(threads int, mem []byte) float64 {
	read := gemm.Read(cpu.Detected())
	if read == nil {
		read = sumWords
	}
	part := len(mem) / threads &^ 4095
	return together(threads, func(i int) float64 {
		read(&mem[i*part], part)
		return float64(part)
	})
}

// together runs f on a number of goroutines and returns the work that they did
// per nanosecond, from the first start to the last end.
func together(threads int, f func(i int) float64) float64 {
	work := make([]float64, threads)
	var all sync.WaitGroup
	start := time.Now()
	for i := range threads {
		all.Go(func() { work[i] = f(i) })
	}
	all.Wait()
	spent := time.Since(start)
	sum := 0.0
	for _, w := range work {
		sum += w
	}
	return sum / float64(spent.Nanoseconds())
}

// copier returns a function that copies half of bytes, each thread a part, and
// says how long that took: the limit of kernels that only move data.
func copier(threads int, bytes int64) func() time.Duration {
	half := int(bytes/2) / threads
	src, dst := make([]byte, half*threads), make([]byte, half*threads)
	return func() time.Duration {
		var all sync.WaitGroup
		start := time.Now()
		for i := 1; i < threads; i++ {
			all.Go(func() { copy(dst[i*half:(i+1)*half], src[i*half:]) })
		}
		copy(dst[:half], src[:half])
		all.Wait()
		return time.Since(start)
	}
}
