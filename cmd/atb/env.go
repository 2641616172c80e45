package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	atbctx "goatb/context"
	"goatb/internal/spelling"
	"goatb/status"
)

// policyVariable names the tiling policy, cacheVariable the levels of its caches.
const (
	policyVariable = "ATB_TILING_POLICY"
	cacheVariable  = "ATB_OPSRUNNER_KERNEL_CACHE_TYPE"
)

// envCmd shows the configuration.
type envCmd struct {
	Set  []string `help:"Set a variable: NAME=VALUE. Repeats or takes commas; \\, is a comma in a value." placeholder:"VAR=VALUE"`
	JSON bool     `help:"Print one JSON object." name:"json"`
}

// envReport is what env prints as JSON.
type envReport struct {
	Schema  int      `json:"schema"`
	Command string   `json:"command"`
	Vars    []envVar `json:"vars"`
	Errors  []string `json:"errors"`
}

// envVar is one variable: Value is what was set, nil for nothing, Effective
// what is in force.
type envVar struct {
	Name      string  `json:"name"`
	Value     *string `json:"value"`
	Source    string  `json:"source"`
	Default   string  `json:"default"`
	Range     string  `json:"range"`
	Meaning   string  `json:"meaning"`
	Effective string  `json:"effective"`
}

// Run prints every variable; bad values are an error that names them all.
func (e *envCmd) Run(out output) error {
	set, err := variables(e.Set)
	if err != nil {
		return err
	}
	lookup, err := overriding(set)
	if err != nil {
		return err
	}
	cfg, cfgErr := atbctx.ConfigFromEnv(lookup)
	r := envReport{Schema: 1, Command: "env", Vars: []envVar{}, Errors: []string{}}
	for i, v := range cfg.Variables() {
		if cfgErr != nil {
			v = alone(i, lookup)
		}
		x := envVar{Name: v.Name, Source: v.Source, Default: v.Default, Range: v.Range, Meaning: v.Meaning, Effective: v.Value}
		for _, name := range spellings(&v) {
			if s, ok := lookup(name); ok && x.Value == nil {
				x.Value = &s
			}
		}
		r.Vars = append(r.Vars, x)
	}
	if cfgErr != nil {
		r.Errors = lines(cfgErr)
	}
	if err := e.print(out.stdout, &r); err != nil {
		return err
	}
	return cfgErr
}

// overriding looks variables up in the --set flags and then in the environment.
// A flag shadows every variable that says the same thing.
func overriding(set []assignment) (func(string) (string, bool), error) {
	def := atbctx.DefaultConfig()
	known := def.Variables()
	overrides := map[string]string{}
	var shadowed []string
	for _, a := range set {
		if err := knownVariable(known, a.name); err != nil {
			return nil, err
		}
		i := indexOfVariable(known, a.name)
		overrides[a.name] = a.value
		shadowed = append(shadowed, sameThing(&known[i])...)
	}
	return func(name string) (string, bool) {
		if v, ok := overrides[name]; ok || slices.Contains(shadowed, name) {
			return v, ok
		}
		return os.LookupEnv(name)
	}, nil
}

// cacheLevels are the tiling cache levels under --caches: none when off, those of
// the variables when left out, and when on too unless they say none.
func cacheLevels(caches string, set []string) (int, error) {
	_, cfg, err := effective(set)
	switch {
	case err != nil:
		return 0, err
	case caches == "off":
		return 0, nil
	case caches == "on" && cfg.CacheType == 0:
		return atbctx.DefaultConfig().CacheType, nil
	}
	return cfg.CacheType, nil
}

// effective is the configuration of the --set flags over the environment, with
// the lookup that it was read through. What names the policy is left out of it.
func effective(set []string) (func(string) (string, bool), atbctx.Config, error) {
	vars, err := checkedVariables(set)
	if err != nil {
		return nil, atbctx.Config{}, err
	}
	all, err := overriding(vars)
	if err != nil {
		return nil, atbctx.Config{}, err
	}
	def := atbctx.DefaultConfig()
	known := def.Variables()
	policy := sameThing(&known[indexOfVariable(known, policyVariable)])
	lookup := func(name string) (string, bool) {
		if slices.Contains(policy, name) {
			return "", false
		}
		return all(name)
	}
	cfg, err := atbctx.ConfigFromEnv(lookup)
	return lookup, cfg, err
}

func indexOfVariable(known []atbctx.Variable, name string) int {
	return slices.IndexFunc(known, func(v atbctx.Variable) bool { return slices.Contains(spellings(&v), name) })
}

// knownVariable refuses a name that no variable has.
func knownVariable(known []atbctx.Variable, name string) error {
	if indexOfVariable(known, name) >= 0 {
		return nil
	}
	var names []string
	for i := range known {
		names = append(names, spellings(&known[i])...)
	}
	return fmt.Errorf("--set %s: there is no such variable; the nearest is %s, and atb env lists all", name, spelling.Nearest(name, names)[0])
}

// alone is variable i as it would be without the variables that have nothing to
// do with it, so that a bad one leaves the others as they are.
func alone(i int, lookup func(string) (string, bool)) atbctx.Variable {
	def := atbctx.DefaultConfig()
	names := sameThing(&def.Variables()[i])
	cfg, err := atbctx.ConfigFromEnv(func(name string) (string, bool) {
		if !slices.Contains(names, name) {
			return "", false
		}
		return lookup(name)
	})
	if err != nil {
		cfg = def
	}
	return cfg.Variables()[i]
}

// spellings are the names of a variable.
func spellings(v *atbctx.Variable) []string { return append([]string{v.Name}, v.Aliases...) }

// sameThing lists the variables that say the same thing as v: its spellings, or
// all that name the tiling policy.
func sameThing(v *atbctx.Variable) []string {
	policy := []string{policyVariable, "ATB_LAUNCH_KERNEL_WITH_TILING", "ATB_USE_TILING_COPY_STREAM"}
	if slices.Contains(policy, v.Name) {
		return policy
	}
	return spellings(v)
}

// lines splits a configuration error into its parts.
func lines(err error) []string {
	if e, ok := errors.AsType[*status.OpError](err); ok && e.Err != nil {
		err = e.Err
	}
	return strings.Split(err.Error(), "\n")
}

func (e *envCmd) print(w io.Writer, r *envReport) error {
	if e.JSON {
		return writeJSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tSOURCE\tDEFAULT\tRANGE\tMEANING")
	for _, v := range r.Vars {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, v.Effective, v.Source, v.Default, v.Range, v.Meaning)
	}
	return t.Flush()
}
