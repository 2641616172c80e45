// Package argsformat reads and writes the format strings that describe the
// arguments of a task: what each word of an argument buffer holds, in order.
//
// A format is a row of items in braces, and nothing outside them:
//
//	{i0}{o0}{ws0}{tiling_context.tiling_data}
//
//	i<N>[*] o<N>[*] i* o*         inputs and outputs; * places every instance in
//	                              the buffer itself (unfolded), without it the
//	                              word points to a list (folded); i* is all
//	i_desc<N>[*] o_desc<N>[*]     descriptors
//	i_instance<N>[*] i_instance*  one instance of an input or output, or all;
//	o_instance<N>[*] o_instance*  instances count the connected ones
//	ws<N>[*] ws*                  workspaces; all of them are 16 words
//	t, t_ffts.non_tail, t_ffts.tail
//	                              tiling data
//	ffts_addr, overflow_addr
//	hi.hcom<N>* hi.tilefwk<N>* hi.hcclsk<N>*
//	                              hidden inputs
//	tiling_context, tiling_context.tiling_data, tiling_context.tiling_key,
//	tiling_context.block_dim      the device tiling context and its parts
//	*op_type                      the name of the operation's type
//	(nothing), .32b               a placeholder of 8 or 4 bytes
//	#<U>, #.32b<U>                a literal of 8 or 4 bytes
//	event_addr<N>*                the memory flag of event N
//	skn<ID><item>                 the item of sub node ID of a super kernel
//
// Numbers are decimal, without sign and without leading zeros. A word is 8
// bytes unless the item says 32b. Parse and Format.String are inverse: what one
// writes the other reads as the same value.
package argsformat
