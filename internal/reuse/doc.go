// Package reuse tests that what an operation keeps from one call to the next
// never shows. One table holds all operations; each row is run cold, on a fresh
// context with every cache off, and again and again on one operation object
// while data, addresses, workspace, host values, policy, shapes and parameters
// change, with each kind of reuse on and off. Results agree bit for bit, and the
// memory of earlier calls, filled with NaN, stays as it is.
package reuse
