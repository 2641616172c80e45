package compiled

// Fault tells the reasons apart for which a file is not taken:
// errors.Is(err, compiled.Damaged).
type Fault string

// Faults.
const (
	// Foreign is a file that is none of this package's.
	Foreign Fault = "not a compiled graph"
	// OtherVersion is a file of another format or of another build of the library.
	OtherVersion Fault = "compiled by another version"
	// Damaged is a file that has changed since it was written.
	Damaged Fault = "damaged"
	// OtherTarget is a file for another chip, form, machine or device.
	OtherTarget Fault = "compiled for another target"
	// OtherGraph is a graph of a name that the file has, and otherwise another.
	OtherGraph Fault = "compiled from another graph"
)

// Error gives the fault's name.
func (f Fault) Error() string { return string(f) }
