package operation

import (
	"goatb/status"
	"goatb/tiling/sink"
)

// SetOption sets an option of the operation or graph; the next Setup plans anew.
// The one option is ge.tiling_schedule_optimize: "" leaves it to the context, "0"
// and "1" tell policy device-sink whether tilings leave the host. Errors:
// ErrInvalidParam for another option, another value, and a node of a graph, whose
// options are the graph's.
func (o *Op) SetOption(name, value string) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	return status.Place(o.setOption(name, value), status.ErrInvalidParam, o.name, "set option", "")
}

func (o *Op) setOption(name, value string) error {
	if name != sink.OptionName {
		return status.Errorf(status.ErrInvalidParam, "want option %s, got %.64q", sink.OptionName, name)
	}
	s, err := sink.ParseSetting(value)
	switch {
	case err != nil:
		return err
	case o.owner != nil:
		return status.Errorf(status.ErrInvalidParam, "option %s belongs to the graph around the operation", name)
	case o.option != s:
		o.option = s
		o.bump()
	}
	return nil
}
