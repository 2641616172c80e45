package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	atbctx "goatb/context"
	"goatb/status"
)

// envCmd shows the configuration.
type envCmd struct {
	Set  []string `help:"Set a variable: NAME=VALUE." placeholder:"VAR=VALUE"`
	JSON bool     `help:"Print one JSON object." name:"json"`
}

// envReport is what env prints as JSON.
type envReport struct {
	Schema  int      `json:"schema"`
	Command string   `json:"command"`
	Vars    []envVar `json:"vars"`
	Errors  []string `json:"errors"`
}

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
	overrides := map[string]string{}
	for _, s := range e.Set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return fmt.Errorf("--set %q: want NAME=VALUE", s)
		}
		overrides[name] = value
	}
	lookup := func(name string) (string, bool) {
		if v, ok := overrides[name]; ok {
			return v, true
		}
		return os.LookupEnv(name)
	}
	cfg, err := atbctx.ConfigFromEnv(lookup)
	r := envReport{Schema: 1, Command: "env", Vars: []envVar{}, Errors: []string{}}
	for _, v := range cfg.Variables() {
		x := envVar{Name: v.Name, Source: v.Source, Default: v.Default, Range: v.Range, Meaning: v.Meaning, Effective: v.Value}
		for _, name := range append([]string{v.Name}, v.Aliases...) {
			if s, ok := lookup(name); ok && x.Value == nil {
				x.Value = &s
			}
		}
		r.Vars = append(r.Vars, x)
	}
	if err != nil {
		r.Errors = lines(err)
	}
	if perr := e.print(out, &r); perr != nil {
		return perr
	}
	return err
}

// lines splits a configuration error into its parts.
func lines(err error) []string {
	if e, ok := errors.AsType[*status.OpError](err); ok && e.Err != nil {
		err = e.Err
	}
	return strings.Split(err.Error(), "\n")
}

func (e *envCmd) print(out output, r *envReport) error {
	if e.JSON {
		enc := json.NewEncoder(out.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	w := tabwriter.NewWriter(out.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVALUE\tSOURCE\tDEFAULT\tRANGE\tMEANING")
	for _, v := range r.Vars {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, v.Effective, v.Source, v.Default, v.Range, v.Meaning)
	}
	return w.Flush()
}
