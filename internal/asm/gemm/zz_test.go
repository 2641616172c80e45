package gemm

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"goatb/internal/cpu"
)

func TestZZ(t *testing.T) {
	var s *Set
	for i := range Sets() {
		if Sets()[i].Elem == F32 && Sets()[i].Row != nil {
			s = &Sets()[i]
			break
		}
	}
	rd := Read(cpu.Detected())
	type prod struct{ k, p int }
	var ps []prod
	for range 5 {
		ps = append(ps, prod{64, 4}, prod{64, 2}, prod{64, 11}, prod{172, 2})
	}
	ps = append(ps, prod{64, 16})
	total := 0
	for _, p := range ps {
		total += p.k * p.p * 128
	}
	for _, extra := range []int{0, 160 << 10, 330 << 10, 600 << 10} {
		for round := range 2 {
			mem, _ := syscall.Mmap(-1, 0, 4<<20, 3, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			for i := range mem {
				mem[i] = 0
			}
			w, e := mem[:total], mem[2<<20:]
			x, out := make([]byte, 4096), make([]byte, 4096)
			run := func(f func()) string {
				var d []time.Duration
				for range 2000 {
					if extra > 0 {
						rd(&e[0], extra)
					}
					st := time.Now()
					f()
					d = append(d, time.Since(st))
				}
				slices.Sort(d)
				return fmt.Sprintf("min %.1f q25 %.1f med %.1f", float64(d[0])/1e3, float64(d[500])/1e3, float64(d[1000])/1e3)
			}
			a := run(func() {
				at := 0
				for _, p := range ps {
					s.Row(p.k, p.p, &x[0], &w[at], &out[0], p.k*128)
					at += p.k * p.p * 128
				}
			})
			b := run(func() { rd(&w[0], total/4096*4096) })
			fmt.Println("extra KB", extra>>10, "round", round, "rows:", a, " read:", b, total)
			syscall.Munmap(mem)
		}
	}
}
