package vec

// DotI8 returns the inner product of a and b, which have equal lengths, as an
// int32. The sum wraps beyond int32, which needs more than 131071 elements.
func DotI8(a, b []int8) int32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 int32
	for len(a) >= 8 && len(b) >= 8 {
		s0 += int32(a[0])*int32(b[0]) + int32(a[4])*int32(b[4])
		s1 += int32(a[1])*int32(b[1]) + int32(a[5])*int32(b[5])
		s2 += int32(a[2])*int32(b[2]) + int32(a[6])*int32(b[6])
		s3 += int32(a[3])*int32(b[3]) + int32(a[7])*int32(b[7])
		a, b = a[8:], b[8:]
	}
	for i, v := range a {
		s0 += int32(v) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}
