// Package spelling finds the names that somebody may have meant.
package spelling

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Nearest returns the known names sorted by how near they are to a name, those
// as near as each other in the order given. Letters that differ in case only
// count less than others, and so does a name that the other begins with.
func Nearest(name string, known []string) []string {
	far := make(map[string]int, len(known))
	for _, k := range known {
		far[k] = distance(name, k)
	}
	sorted := slices.Clone(known)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(far[a], far[b]) })
	return sorted
}

// List writes the known names for an error: quoted, the nearest to name first.
func List(name string, known []string) string {
	quoted := Nearest(name, known)
	for i, k := range quoted {
		quoted[i] = strconv.Quote(k)
	}
	return strings.Join(quoted, ", ")
}

// longest bounds the part of a name that is compared.
const longest = 64

// distance is an edit distance in tenths of an edit.
func distance(name, known string) int {
	if name == known {
		return 0
	}
	a, b := strings.ToLower(cut(name)), strings.ToLower(cut(known))
	if a == b {
		return 1
	}
	edits := 10 * levenshtein(a, b)
	if a != "" && (strings.HasPrefix(b, a) || strings.HasPrefix(a, b)) {
		edits /= 4
	}
	return edits + 1
}

func cut(s string) string { return s[:min(len(s), longest)] }

// levenshtein counts the bytes to insert, delete or replace.
func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
