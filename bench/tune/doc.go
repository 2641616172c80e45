// Package tune holds what tilings choose against what a search finds. A tiling is
// a function of the machine that it is told: the search tells it of other numbers of
// cores and of other caches, and leaves kernels out that would be chosen. Every different way
// that comes out of that is run in turns with the tiling's own choice, on the same
// tensors, through the operation.
package tune
