package roofline

import (
	"errors"
	"strings"
	"sync"
	"time"

	"goatb/device/cpu"
	"goatb/internal/asm/gemm"
	features "goatb/internal/cpu"
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

	dev  *cpu.Device
	mem  []byte // what reading reads, in turn
	next int
}

// window is the least time of one measurement of a limit.
const window = 20 * time.Millisecond

// MeasureLimits measures the limits of a number of threads: the best of a few
// rounds, since others can only take time away. What it reads is device memory
// of a number of bytes: more than any cache holds, and at least a page for each
// thread. It stays allocated until Close.
func MeasureLimits(threads int, bytes int64) (*Limits, error) {
	dev, err := cpu.New(cpu.WithWorkers(1))
	if err != nil {
		return nil, err
	}
	b, err := dev.Alloc(bytes)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	l := &Limits{Threads: threads, Peaks: map[string]float64{}, dev: dev, mem: b.Bytes()}
	for i := range l.mem {
		l.mem[i] = 1 // pages that nobody wrote to may all be one page of zeros
	}
	for range 3 {
		for _, p := range gemm.Peaks(features.Detected()) {
			name := peakType(p)
			l.Peaks[name] = max(l.Peaks[name], peakRate(threads, p))
		}
		l.Read = max(l.Read, l.readAll())
	}
	return l, nil
}

// Close frees the memory.
func (l *Limits) Close() error { return l.dev.Close() }

// peakType is the data type of a loop.
func peakType(p gemm.Peak) string {
	name, _, _ := strings.Cut(p.Name, "/")
	return name
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

// readAll reads the memory once, each thread a part of its own.
func (l *Limits) readAll() float64 { return l.read(0, len(l.mem)/l.Threads&^4095) }

// read reads a part of the memory for each thread, from an offset on.
func (l *Limits) read(at, part int) float64 {
	loop := gemm.Read(features.Detected())
	if loop == nil {
		loop = sumWords
	}
	return together(l.Threads, func(i int) float64 {
		loop(&l.mem[at+i*part], part)
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

// Bound names what limits a case, and returns a function that does as much of
// nothing else and says how long that took.
func (l *Limits) Bound(c *Case) (string, func() time.Duration) {
	if c.Peak == "" {
		return "copy", copier(l.Threads, int64(c.Bytes))
	}
	fastest := l.fastest(c.Peak)
	if fastest == "" || c.Bytes/l.Read > c.Flops/l.Peaks[fastest] {
		return "memory", l.reader(c.Bytes)
	}
	return "fma", multiplier(l.Threads, fastest, c.Flops)
}

// fastest is the type whose multiply-adds are the fastest that values of a type
// can go through: its own or, after a conversion, those of f32. There are
// processors whose bf16 instruction is the slower one.
func (l *Limits) fastest(dtype string) string {
	if l.Peaks[dtype] < l.Peaks["f32"] {
		return "f32"
	}
	if l.Peaks[dtype] == 0 {
		return ""
	}
	return dtype
}

// reader returns a function that reads memory that no cache holds and says how
// long a number of bytes takes. It reads all of it first: what a virtual machine
// has not touched for a while can be several times slower, once.
func (l *Limits) reader(bytes float64) func() time.Duration {
	part := int(bytes) / l.Threads &^ 4095
	part = max(4096, min(part, len(l.mem)/l.Threads&^4095))
	l.readAll()
	return func() time.Duration {
		if l.next+part*l.Threads > len(l.mem) {
			l.next = 0
		}
		at := l.next
		l.next += part * l.Threads
		return time.Duration(bytes / l.read(at, part))
	}
}

// multiplier returns a function that says how long a number of operations takes
// as multiply-adds and nothing else. It does them all, or for a window.
func multiplier(threads int, dtype string, flops float64) func() time.Duration {
	var loop gemm.Peak
	for _, p := range gemm.Peaks(features.Detected()) {
		if peakType(p) == dtype {
			loop = p
		}
	}
	each := max(1, int(flops/float64(threads)/float64(loop.Ops)))
	const turns = 1000
	return func() time.Duration {
		rate := together(threads, func(int) float64 {
			done := 0
			for start := time.Now(); done < each && time.Since(start) < window; {
				n := min(turns, each-done)
				loop.Run(n)
				done += n
			}
			return float64(done) * float64(loop.Ops)
		})
		return time.Duration(flops / rate)
	}
}

// copier returns a function that copies half of bytes, each thread a part, and
// says how long that took: the limit of kernels that only move data.
func copier(threads int, bytes int64) func() time.Duration {
	half := int(bytes/2) / threads
	src, dst := make([]byte, half*threads), make([]byte, half*threads)
	for i := range src {
		src[i] = byte(i) // memory that nobody has written is one page of zeros
	}
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
