package device

import "goatb/status"

// Events of a device are recorded and waited for as often as the program likes;
// an event of a list has one record and one wait. So a capture gives each pair of
// a record and a wait for it an event of its own.

// capturedEvent is what a capture knows of an event of the device.
type capturedEvent struct {
	last *capturedRecord   // the latest record since the last reset
	next []*capturedRecord // records to come that waits wait for
	// taken says that a reset took the last of next away: a wait wants another.
	taken bool
}

// capturedRecord is one record of an event, made when it is captured or when a
// wait asks for it first.
type capturedRecord struct {
	on     *CaptureStream // nil until it is captured
	at     int            // index of its task
	spare  bool           // the event of that task has no wait yet
	events []EventID      // of waits that came first
}

// event returns the book of e; mu is held.
func (c *Capture) event(e Event) (*capturedEvent, error) {
	if c.over {
		return nil, errCaptureOver()
	}
	if e == nil {
		return nil, status.Errorf(status.ErrInvalidParam, "want an event, got none")
	}
	if c.events[e] == nil {
		c.events[e] = &capturedEvent{}
	}
	return c.events[e], nil
}

// Record captures a record of e.
func (s *CaptureStream) Record(e Event) error {
	c := s.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	ev, err := c.event(e)
	if err != nil {
		return err
	}
	r := &capturedRecord{}
	ev.last = r
	if len(ev.next) > 0 {
		r, ev.next = ev.next[0], ev.next[1:]
		ev.last = r
		if len(ev.next) > 0 || ev.taken {
			ev.last = nil
		}
	}
	if len(r.events) == 0 {
		r.events, r.spare = append(r.events, c.list.NewEvent()), true
	}
	for _, id := range r.events {
		s.insert(len(c.list.Tasks), Task{Kind: EventRecordTask, Event: id})
	}
	r.on, r.at = s, len(c.list.Tasks)-1
	c.records = append(c.records, r)
	return nil
}

// Wait captures a wait for e's latest captured record, or for the next one.
func (s *CaptureStream) Wait(e Event) error {
	c := s.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	ev, err := c.event(e)
	if err != nil {
		return err
	}
	r := ev.last
	if r == nil {
		if len(ev.next) == 0 || ev.taken {
			ev.next, ev.taken = append(ev.next, &capturedRecord{}), false
		}
		r = ev.next[len(ev.next)-1]
	}
	id := c.pair(r)
	s.insert(len(c.list.Tasks), Task{Kind: EventWaitTask, Event: id})
	return nil
}

// pair returns the event of a new wait for r.
func (c *Capture) pair(r *capturedRecord) EventID {
	if r.spare {
		r.spare = false
		return r.events[0]
	}
	id := c.list.NewEvent()
	r.events = append(r.events, id)
	if r.on != nil {
		r.on.insert(r.at, Task{Kind: EventRecordTask, Event: id})
	}
	return id
}

// Reset captures that e's records are forgotten.
func (s *CaptureStream) Reset(e Event) error {
	c := s.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	ev, err := c.event(e)
	if err != nil {
		return err
	}
	ev.last, ev.taken = nil, len(ev.next) > 0
	return nil
}

var _ Stream = (*CaptureStream)(nil)
