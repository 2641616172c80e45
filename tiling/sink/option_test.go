package sink

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestParseSetting(t *testing.T) {
	for value, want := range map[string]Setting{"": Unset, "0": Off, "1": On} {
		s, err := ParseSetting(value)
		require.NoError(t, err)
		assert.Equal(t, want, s)
		assert.Equal(t, value, s.String())
	}
	for _, value := range []string{"true", "True", "on", " 1", "1 ", "01", "2", "-1", "\n", "invalid"} {
		_, err := ParseSetting(value)
		require.ErrorIs(t, err, status.ErrInvalidParam, "%q", value)
		assert.ErrorContains(t, err, OptionName)
		require.ErrorContains(t, err, `want "", "0" or "1", got `)
	}
	_, err := ParseSetting("invalid")
	assert.ErrorContains(t, err, `got "invalid"`)
}

func TestNearerLevelsWin(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want Choice
	}{
		{Options{}, Choice{false, "default"}},
		{Options{Default: On}, Choice{true, "default"}},
		{Options{Default: On, Session: "0"}, Choice{false, "session"}},
		{Options{Session: "0", Graph: "1"}, Choice{true, "graph"}},
		{Options{Session: "1", Graph: "0"}, Choice{false, "graph"}},
		{Options{Session: "1", Graph: "1", Compile: "0"}, Choice{false, "compile"}},
		{Options{Session: "0", Compile: "1", Default: Off}, Choice{true, "compile"}},
		{Options{Session: "1", Graph: "", Compile: ""}, Choice{true, "session"}},
	} {
		got, err := tt.o.Resolve()
		require.NoError(t, err)
		assert.Equal(t, tt.want, got, "%+v", tt.o)
	}
}

func TestBadValueAtAnyLevel(t *testing.T) {
	for level, o := range map[string]Options{
		"session": {Session: "yes", Graph: "1", Compile: "0"},
		"graph":   {Graph: "yes"},
		"compile": {Session: "1", Compile: "yes"},
	} {
		_, err := o.Resolve()
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, level+`: option ge.tiling_schedule_optimize: want "", "0" or "1", got "yes"`)
	}
}
