package sink

import (
	"strconv"
	"strings"

	"goatb/status"
)

// Profile is what the generator knows about a system on a chip.
type Profile struct {
	Name string
	// Sinks says that the chip can update queued tasks.
	Sinks bool
	// Prefetch is the number of queue entries that the chip fetches past an event
	// wait, and so the number of nops in front of a kernel that is updated;
	// NoPrefetch where it is not known: then nothing can be sunk.
	Prefetch int
}

// NoPrefetch is the Prefetch of a chip whose number is not known.
const NoPrefetch = -1

// MaxPrefetch bounds the nops of one kernel.
const MaxPrefetch = 1024

// chips lists the profiles. A name ending in * stands for all that begin so;
// the first row that fits counts.
var chips = []struct {
	names    string
	sinks    bool
	prefetch int
}{
	{"910B 910B1 910B2 910B2C 910B3 910B4", true, 8},
	{"910_93 910_9372 910_9381 910_9382 910_9391 910_9392", true, 8},
	{"950*", true, 8},
	{"350_354f 350_355e", true, 8},
	{"310P 310P1 310P3 310P5 310P7", true, 10},
	// The number of nops of the published design, half of what the chip needs.
	{"310P-design", true, 5},
	{"910B4-1 910_9362 910_9363", true, NoPrefetch},
	{"031 035* 310B1 310B2 310B3 310B4 910A 910ProA 910ProB 910PremiumA", false, NoPrefetch},
}

// ProfileOf returns the profile of a chip, such as "910B3" or "Ascend310P3",
// whatever the case. An unknown one is ErrInvalidParam.
func ProfileOf(chip string) (Profile, error) {
	name := canonical(chip)
	for i := range chips {
		for _, pattern := range strings.Fields(chips[i].names) {
			p, all := strings.CutSuffix(strings.ToLower(pattern), "*")
			if name == p || all && strings.HasPrefix(name, p) {
				return Profile{chip, chips[i].sinks, chips[i].prefetch}, nil
			}
		}
	}
	return Profile{}, status.Errorf(status.ErrInvalidParam, "unknown SoC %.64q: want one of %s", chip, strings.Join(ProfileNames(), ", "))
}

// canonical is the name of a chip without case and maker's prefix.
func canonical(chip string) string { return strings.TrimPrefix(strings.ToLower(chip), "ascend") }

// Same reports whether two profiles are of one chip, however its name is written.
func (p *Profile) Same(o *Profile) bool {
	return canonical(p.Name) == canonical(o.Name) && p.Sinks == o.Sinks && p.Prefetch == o.Prefetch
}

// ProfileNames lists the chips; "950*" stands for all names that begin so.
func ProfileNames() []string {
	var names []string
	for i := range chips {
		names = append(names, strings.Fields(chips[i].names)...)
	}
	return names
}

// Nops returns the number of nops in front of an updated kernel. A profile
// without one is ErrInvalidParam, since without them the kernel would run with
// stale parameters.
func (p *Profile) Nops() (int, error) {
	if p.Prefetch < 0 || p.Prefetch > MaxPrefetch {
		got := strconv.Itoa(p.Prefetch)
		if p.Prefetch == NoPrefetch {
			got = "none"
		}
		return 0, status.Errorf(status.ErrInvalidParam, "SoC profile %s: want a prefetch number from 0 to %d to sink tilings, got %s", p.Name, MaxPrefetch, got)
	}
	return p.Prefetch, nil
}
