// Package devicetest is the suite that every device passes: Run checks an
// implementation of device.Device against the contract of package device.
//
//	func TestConformance(t *testing.T) {
//		devicetest.Run(t, func(t *testing.T) device.Device {
//			d, err := cpu.New()
//			require.NoError(t, err)
//			return d
//		})
//	}
//
// RunTaskLists checks the part of a device.ModelDevice that runs task lists, on
// devices with the properties that each check asks for.
//
// The subtests run in bubbles of testing/synctest, so that "nothing more
// happens" can be checked without waiting. So the function given to Run has to
// open the device itself, its goroutines have to be started by its own calls,
// none of them may spin without a bound, and a stream has to hold at least 16
// tasks.
package devicetest
