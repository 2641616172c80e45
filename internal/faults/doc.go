// Package faults holds a test for every known fault of ATB and of kindred
// systems that touches what GoATB has built.
package faults
