package sink

import "goatb/status"

// OptionName is the option that turns tiling on the device on.
const OptionName = "ge.tiling_schedule_optimize"

// Setting is a value of the option.
type Setting uint8

// Settings.
const (
	// Unset leaves the choice to the next level; it is written "".
	Unset Setting = iota
	// Off keeps tilings on the host; it is written "0".
	Off
	// On sinks what passes the gates; it is written "1".
	On
)

// ParseSetting reads "", "0" or "1". Anything else, also with spaces around it
// and words such as "true", is ErrInvalidParam naming option and value.
func ParseSetting(value string) (Setting, error) {
	switch value {
	case "":
		return Unset, nil
	case "0":
		return Off, nil
	case "1":
		return On, nil
	}
	return Unset, status.Errorf(status.ErrInvalidParam, `option %s: want "", "0" or "1", got %.64q`, OptionName, value)
}

// String writes the setting as ParseSetting reads it.
func (s Setting) String() string { return [...]string{"", "0", "1"}[s%3] }

// Options holds the option's value at each level where it may be set.
type Options struct {
	// Compile is that of one compilation, Graph that of a graph, Session that of
	// a session.
	Compile, Graph, Session string
	// Default is what holds when no level sets the option: On where the policy is
	// device-sink, else Off. Unset means Off.
	Default Setting
}

// Choice is the setting that holds, with the level that it comes from.
type Choice struct {
	On    bool
	Level string
}

// Resolve parses all levels and takes the nearest that is set: compile, graph,
// session, default. A bad value is an error also where a nearer level is set; it
// names option, value and level.
func (o Options) Resolve() (Choice, error) {
	c := Choice{o.Default == On, "default"}
	for _, l := range [...]struct{ level, value string }{{"session", o.Session}, {"graph", o.Graph}, {"compile", o.Compile}} {
		s, err := ParseSetting(l.value)
		if err != nil {
			return Choice{}, status.Place(err, status.ErrInvalidParam, "", l.level, "")
		}
		if s != Unset {
			c = Choice{s == On, l.level}
		}
	}
	return c, nil
}
