package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
	atbctx "goatb/context"
)

// section returns the part of a text between a heading and the next.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	require.True(t, ok, heading)
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

// TestDocsNameEveryFlag compares docs/cli.md with the command line: every flag
// and JSON field is there, in its command's section or among the shared ones.
func TestDocsNameEveryFlag(t *testing.T) {
	b, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	doc := string(b)
	shared, _, _ := strings.Cut(doc, "\n## ")
	var c cli
	parser, err := kong.New(&c)
	require.NoError(t, err)
	for _, cmd := range parser.Model.Children {
		part := shared + section(t, doc, "## "+cmd.Name)
		for _, f := range cmd.Flags {
			assert.Contains(t, part, "`--"+f.Name, "flag of %s", cmd.Name)
		}
	}
	for heading, report := range map[string]any{"## generate": report{}, "## plan": planReport{}, "## graph": graphReport{}, "## run": runResult{}, "## compile": compileReport{}, "## env": envReport{}, "## policies": compare.Result{}} {
		part := section(t, doc, heading)
		for _, name := range fields(reflect.TypeOf(report)) {
			if name != "schema" && name != "command" {
				assert.Contains(t, part, name, "JSON field of %s", heading)
			}
		}
	}
}

// fields lists the JSON names of a type and what it holds.
func fields(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(append(names, name), fields(f.Type)...)
		}
	}
	return names
}

// TestDocsGraphFile shows the graph of docs/cli.md.
func TestDocsGraphFile(t *testing.T) {
	cleanEnv(t)
	b, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "```json\n")
	require.True(t, ok)
	text, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	require.Contains(t, fine(t, "graph", "--plan", write(t, "g.json", []byte(text))), "act: ")
}

// TestReadmeNamesEveryVariable compares the README's table with the
// configuration: names and defaults.
func TestReadmeNamesEveryVariable(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	part := section(t, string(b), "## Variables")
	part = strings.NewReplacer("ATB_STREAM_SYNC_EVERY_{KERNEL,RUNNER,OPERATION}_ENABLE", "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE ATB_STREAM_SYNC_EVERY_OPERATION_ENABLE").Replace(part)
	cfg := atbctx.DefaultConfig()
	for _, v := range cfg.Variables() {
		i := strings.Index(part, v.Name)
		if !assert.GreaterOrEqual(t, i, 0, v.Name) {
			continue
		}
		line, _, _ := strings.Cut(part[i:], "\n")
		if v.Default == "" {
			v.Default = "empty"
		}
		assert.Contains(t, line, v.Default, v.Name)
	}
}
