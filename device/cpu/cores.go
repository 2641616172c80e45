package cpu

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// defaultWorkers returns the number of goroutines that can really run at once.
func defaultWorkers() int {
	n := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	if q, ok := cpuQuota(os.DirFS("/")); ok {
		n = min(n, int(q))
	}
	return max(n, 1)
}

// cpuQuota returns how many processors the control groups of this process
// allow, the least over all levels. root is the root of the file system.
func cpuQuota(root fs.FS) (float64, bool) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	quota, found := 0.0, false
	for line := range strings.Lines(string(groups)) {
		// hierarchy id, controllers, path; version 2 has no controllers.
		field := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(field) != 3 {
			continue
		}
		read := quotaV2
		base := "sys/fs/cgroup"
		if field[1] != "" {
			if !hasController(field[1], "cpu") {
				continue
			}
			read, base = quotaV1, "sys/fs/cgroup/cpu"
		}
		for dir := path.Clean("/" + field[2]); ; dir = path.Dir(dir) {
			if q, ok := read(root, base+dir); ok && (!found || q < quota) {
				quota, found = q, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return quota, found
}

func hasController(list, want string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if name == want {
			return true
		}
	}
	return false
}

// quotaV2 reads "quota period" or "max period", in microseconds.
func quotaV2(root fs.FS, dir string) (float64, bool) {
	text, err := fs.ReadFile(root, path.Join(dir, "cpu.max"))
	if err != nil {
		return 0, false
	}
	field := strings.Fields(string(text))
	if len(field) != 2 {
		return 0, false
	}
	return ratio(field[0], field[1])
}

// quotaV1 reads two files; a quota of -1 is none.
func quotaV1(root fs.FS, dir string) (float64, bool) {
	quota, err1 := fs.ReadFile(root, path.Join(dir, "cpu.cfs_quota_us"))
	period, err2 := fs.ReadFile(root, path.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return ratio(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

func ratio(quota, period string) (float64, bool) {
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0, false
	}
	return q / p, true
}

// Cache sizes in bytes where the system does not tell them.
const (
	defaultL1 = 32 << 10
	defaultL2 = 1 << 20
	defaultL3 = 8 << 20
)

// cacheSizes returns the sizes of the first processor's data caches.
func cacheSizes(root fs.FS) (l1, l2, l3 int64) {
	l1, l2, l3 = defaultL1, defaultL2, defaultL3
	const base = "sys/devices/system/cpu/cpu0/cache"
	entries, err := fs.ReadDir(root, base)
	if err != nil {
		return l1, l2, l3
	}
	for _, e := range entries {
		read := func(name string) string {
			text, err := fs.ReadFile(root, path.Join(base, e.Name(), name))
			if err != nil {
				return ""
			}
			return strings.TrimSpace(string(text))
		}
		size, ok := parseSize(read("size"))
		if !ok || read("type") == "Instruction" {
			continue
		}
		switch read("level") {
		case "1":
			l1 = size
		case "2":
			l2 = size
		case "3":
			l3 = size
		}
	}
	return l1, l2, l3
}

// parseSize reads "48K" or "2M".
func parseSize(s string) (int64, bool) {
	unit := int64(1)
	switch {
	case strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseInt(strings.TrimRight(s, "KM"), 10, 64)
	return n * unit, err == nil && n > 0
}
