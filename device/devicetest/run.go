package devicetest

import (
	"testing"
	"testing/synctest"

	"goatb/device"
)

// Open opens a fresh device for one subtest. The suite closes it.
type Open func(t *testing.T) device.Device

// check is one property of a device.
type check struct {
	name string
	run  func(b *bed)
}

// Run checks the devices that open makes.
func Run(t *testing.T, open func(t *testing.T) device.Device) {
	for _, group := range []struct {
		name   string
		checks []check
	}{
		{"memory", memoryChecks},
		{"copy", copyChecks},
		{"launch", launchChecks},
		{"order", orderChecks},
		{"host", hostChecks},
		{"error", errorChecks},
		{"lifetime", lifetimeChecks},
		{"load", loadChecks},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.checks {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { c.run(newBed(t, open)) })
				})
			}
		})
	}
}
