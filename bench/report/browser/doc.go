// Package browser opens reports and timelines in a real Chromium without a window,
// and checks what a person would see. It is a module of its own, so that the main
// one does not depend on a driver of browsers.
//
// The tests look for a browser in the variable CHROMIUM and under the usual names.
// Where there is none they are skipped, and fail when CI is "true".
package browser
