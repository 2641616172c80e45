// Package badargs calls the exported functions and methods of the core packages
// with bad arguments: nil, zero values, numbers out of range, structs of zeros,
// good values beside bad ones. None may panic. Tables list the functions and
// types by package, and a test reads the sources to see that none is missing.
package badargs
