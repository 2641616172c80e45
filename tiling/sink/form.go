package sink

import "goatb/status"

// Form is how a graph whose tilings leave the host is made.
type Form uint8

// Forms.
const (
	// UpdateForm patches a queued kernel by an update task.
	UpdateForm Form = iota
	// FFTSPlusForm is UpdateForm with mixed kernels as FFTS+ tasks.
	FFTSPlusForm
	// SuperKernelForm fuses the kernels that follow each other on a stream into one
	// launch, which waits for tilings at flags in memory.
	SuperKernelForm
	// V2Form wires the tilings of the host into a prepared graph (Prepare): nothing
	// is patched, and tilings that read values run on the host at every execution.
	V2Form
)

// formNames are the names of the forms in options and variables.
var formNames = [...]string{"update", "ffts", "superkernel", "v2"}

// String names the form.
func (f Form) String() string { return formNames[f%4] }

// Forms lists the forms, the default first.
func Forms() []Form { return []Form{UpdateForm, FFTSPlusForm, SuperKernelForm, V2Form} }

// ParseForm reads the name of a form. Another one is ErrInvalidParam.
func ParseForm(name string) (Form, error) {
	for i, n := range formNames {
		if n == name {
			return Form(i), nil
		}
	}
	return 0, status.Errorf(status.ErrInvalidParam, "want form update, ffts, superkernel or v2, got %.64q", name)
}
