package report

import (
	"fmt"
	"strconv"

	"goatb/bench/compare"
)

// bar is one policy's line of a chart.
type bar struct {
	Policy string
	Total  string
	Pieces []piece
	// Words are the pieces for those who do not see them.
	Words string
}

// piece is a part of a bar. Cause is its class, Width its share of the chart's
// width in percent.
type piece struct{ Cause, Name, Label, Time, Width string }

// labelFrom is the width in percent from which on a piece has its label inside.
const labelFrom = 7

// part is one time of a step.
type part struct {
	cause, name string
	ns          int64
}

// idleParts are the causes of idle time, in the order of the table.
func idleParts(i *compare.Idle) []part {
	return []part{
		{"tiling", "tiling", i.Tiling}, {"copy", "copy", i.Copy}, {"launch", "launch", i.Launch},
		{"event", "event", i.Event}, {"ring", "ring", i.Ring}, {"other", "other", i.Other},
	}
}

// stepBars show whole steps, on the scale of the longest.
func stepBars(r *compare.Result) []bar {
	return bars(r, func(p *compare.Policy) []part {
		return append([]part{{"busy", "device busy", p.DeviceBusyNs}}, idleParts(&p.Idle)...)
	})
}

// idleBars show idle time alone, on the scale of the longest.
func idleBars(r *compare.Result) []bar {
	return bars(r, func(p *compare.Policy) []part { return idleParts(&p.Idle) })
}

func bars(r *compare.Result, parts func(p *compare.Policy) []part) []bar {
	longest := int64(1)
	for i := range r.Policies {
		longest = max(longest, sum(parts(&r.Policies[i])))
	}
	list := make([]bar, 0, len(r.Policies))
	for i := range r.Policies {
		p := &r.Policies[i]
		list = append(list, newBar(p.Policy, parts(p), longest))
	}
	return list
}

func newBar(policy string, parts []part, longest int64) bar {
	total := sum(parts)
	b := bar{Policy: policy, Total: us(total) + " µs", Words: fmt.Sprintf("%s, %s µs: ", policy, us(total))}
	for i, x := range parts {
		if i > 0 {
			b.Words += ", "
		}
		b.Words += fmt.Sprintf("%s %s µs", x.name, us(x.ns))
		if x.ns <= 0 {
			continue
		}
		width := 100 * float64(x.ns) / float64(longest)
		q := piece{Cause: x.cause, Name: x.name, Time: us(x.ns) + " µs, " + percent(x.ns, total), Width: fmt.Sprintf("%.3f", width)}
		if width >= labelFrom {
			q.Label = percent(x.ns, total)
		}
		b.Pieces = append(b.Pieces, q)
	}
	return b
}

func sum(parts []part) (ns int64) {
	for _, x := range parts {
		ns += x.ns
	}
	return ns
}

// us writes a time in microseconds.
func us(ns int64) string {
	tenths := (max(ns, -ns) + 50) / 100
	text := count(tenths/10) + "." + strconv.FormatInt(tenths%10, 10)
	if ns < 0 && tenths > 0 {
		return "−" + text
	}
	return text
}

// count writes a number in groups of three digits.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// percent writes a share.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
