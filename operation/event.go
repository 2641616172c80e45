package operation

import (
	"encoding/json"

	"goatb/device"
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// EventAction tells what an Event operation does.
type EventAction int

// Actions.
const (
	// EventNone does nothing.
	EventNone EventAction = iota
	// EventRecord records the event on the operation's stream.
	EventRecord
	// EventWait makes the operation's stream wait for the event and resets it.
	EventWait
)

// String returns the action's name.
func (a EventAction) String() string {
	switch a {
	case EventNone:
		return "undefined"
	case EventRecord:
		return "record"
	case EventWait:
		return "wait"
	}
	return "invalid"
}

// Event orders streams: a record on the producer's stream, a wait on the
// consumer's, inside one graph or across graphs and contexts. It has no inputs
// and no outputs. A wait may be enqueued before its record, but not on the stream
// that the record will be enqueued on: the streams of a graph are joined at its
// end, so a record that a later operation makes on the graph's own stream never
// ends a wait inside the graph.
//
// Source: ATB EventOperation. Errors: ErrInvalidParam at create for an unknown
// action and at Execute for a record or a wait of a nil event; ErrDeviceFail when the device refuses.
type Event struct {
	Event  device.Event
	Action EventAction
}

// Signature describes an operation without operands.
func (e Event) Signature() Signature { return Signature{Name: "EventOperation"} }

// Validate checks the action; a record or a wait of a nil event is found at
// Execute.
func (e Event) Validate() error {
	if e.Action < EventNone || e.Action > EventWait {
		return status.Errorf(status.ErrInvalidParam, "operatorType: want undefined, record or wait, got %d", e.Action)
	}
	return nil
}

// Check has nothing to check.
func (e Event) Check(*Query) error { return nil }

// Infer returns no outputs.
func (e Event) Infer(*Query) ([]tensor.Desc, error) { return nil, nil }

// Lower adds the record or the wait.
func (e Event) Lower(b *kernelgraph.Builder, _ *Query) error {
	switch e.Action {
	case EventRecord:
		b.Record(eventSlot{e.Event})
	case EventWait:
		b.Wait(eventSlot{e.Event})
	}
	return nil
}

// Equal reports whether s is the same action on the same event.
func (e Event) Equal(s Spec) bool { return s == Spec(e) }

// MarshalJSON writes the action; an event is no data.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"operatorType": int(e.Action)})
}

// eventSlot implements runner.EventSlot; equal slots hold the same event.
type eventSlot struct{ e device.Event }

// Event returns the event.
func (s eventSlot) Event() device.Event { return s.e }
