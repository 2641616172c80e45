package cpu

import (
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func TestCPUQuota(t *testing.T) {
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want float64
		ok   bool
	}{
		{"no control groups", files(), 0, false},
		{"version 2", files("proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "250000 100000\n"), 2.5, true},
		{"version 2 without a limit", files("proc/self/cgroup", "0::/a\n", "sys/fs/cgroup/a/cpu.max", "max 100000\n"), 0, false},
		{"limit of a parent", files("proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/cpu.max", "150000 100000\n", "sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"), 1.5, true},
		{"limit at the root", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "300000 100000\n"), 3, true},
		{"version 1", files("proc/self/cgroup", "9:memory:/m\n1:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"), 0.5, true},
		{"version 1 without a limit", files("proc/self/cgroup", "1:cpu:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"), 0, false},
		{"cpuset is not cpu", files("proc/self/cgroup", "3:cpuset:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"), 0, false},
		{"rubbish", files("proc/self/cgroup", "rubbish\n0::/a\n", "sys/fs/cgroup/a/cpu.max", "lots\n"), 0, false},
	} {
		got, ok := cpuQuota(c.root)
		assert.Equal(t, c.ok, ok, c.name)
		assert.Equal(t, c.want, got, c.name)
	}
}

func TestDefaultWorkers(t *testing.T) {
	got := defaultWorkers()
	require.GreaterOrEqual(t, got, 1)
	require.LessOrEqual(t, got, runtime.GOMAXPROCS(0))
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	require.Equal(t, 1, defaultWorkers())
}

func TestCacheSizes(t *testing.T) {
	const base = "sys/devices/system/cpu/cpu0/cache/index"
	l1, l2, l3 := cacheSizes(files(
		base+"0/level", "1\n", base+"0/type", "Data\n", base+"0/size", "48K\n",
		base+"1/level", "1\n", base+"1/type", "Instruction\n", base+"1/size", "64K\n",
		base+"2/level", "2\n", base+"2/type", "Unified\n", base+"2/size", "2M\n",
		base+"3/level", "3\n", base+"3/type", "Unified\n", base+"3/size", "rubbish\n",
	))
	assert.EqualValues(t, 48<<10, l1)
	assert.EqualValues(t, 2<<20, l2)
	assert.EqualValues(t, defaultL3, l3)
	l1, l2, l3 = cacheSizes(files())
	assert.EqualValues(t, []int64{defaultL1, defaultL2, defaultL3}, []int64{l1, l2, l3})
}
