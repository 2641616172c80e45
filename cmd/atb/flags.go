package main

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// limit is the least value of a flag.
type limit struct {
	flag     string
	v, least int64
}

// atLeast refuses the first value below its limit.
func atLeast(limits ...limit) error {
	for _, l := range limits {
		if l.v < l.least {
			return fmt.Errorf("--%s: want at least %d, got %d", l.flag, l.least, l.v)
		}
	}
	return nil
}

// negative is a value that begins like a flag.
var negative = regexp.MustCompile(`^-[0-9.]`)

// joinNegatives writes "--steps -1" as "--steps=-1", so that a negative value is
// a value: no command has flags named by digits.
func joinNegatives(args []string) []string {
	var out []string
	for _, a := range args {
		if last := len(out) - 1; last >= 0 && negative.MatchString(a) && strings.HasPrefix(out[last], "--") && !strings.Contains(out[last], "=") && out[last] != "--" {
			out[last] += "=" + a
			continue
		}
		out = append(out, a)
	}
	return out
}

// refuseEmpty refuses flags that are given without a value, such as "--op=",
// which would be taken as not given. Flags with a pointer to a string may be
// empty.
func refuseEmpty(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag == nil {
			continue
		}
		v := p.Flag.Target
		empty := v.Kind() == reflect.String && v.Len() == 0 || v.Kind() == reflect.Slice && v.Len() == 0
		for i := 0; v.Kind() == reflect.Slice && i < v.Len(); i++ {
			empty = empty || v.Index(i).Kind() == reflect.String && v.Index(i).Len() == 0
		}
		if empty {
			return fmt.Errorf("--%s: want a value, got none", p.Flag.Name)
		}
	}
	return nil
}

// givenFlags are the flags of a command line, by name without dashes.
type givenFlags []string

// refuse refuses flags that were given where they do nothing; why says where.
func (g givenFlags) refuse(why string, flags ...string) error {
	for _, f := range flags {
		if slices.Contains(g, f) {
			return fmt.Errorf("--%s: %s", f, why)
		}
	}
	return nil
}

// refuseIdle refuses flags that would do nothing beside the others given. A
// command that has such flags says so in a method of the same name.
func refuseIdle(k *kong.Context) error {
	var given givenFlags
	for _, p := range k.Path {
		if p.Flag != nil {
			given = append(given, p.Flag.Name)
		}
	}
	node := k.Selected()
	if node == nil {
		return nil
	}
	if c, ok := node.Target.Addr().Interface().(interface{ refuseIdle(given givenFlags) error }); ok {
		return c.refuseIdle(given)
	}
	return nil
}
