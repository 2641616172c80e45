package device_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/device"
)

func TestLabelsNameWhatTheyHave(t *testing.T) {
	bad := errors.New("no")
	for want, l := range map[string]*device.Label{
		"Op: execute: node (kernel): no (ERROR_RT_FAIL)": {Op: "Op", Node: "node", Kernel: "kernel"},
		"Op: execute: kernel: no (ERROR_RT_FAIL)":        {Op: "Op", Kernel: "kernel"},
		"Op: execute: node: no (ERROR_RT_FAIL)":          {Op: "Op", Node: "node"},
		"Op: execute: no (ERROR_RT_FAIL)":                {Op: "Op"},
		"execute: no (ERROR_RT_FAIL)":                    nil,
	} {
		assert.EqualError(t, l.Place(bad), want)
	}
}
