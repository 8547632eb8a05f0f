/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Functions that stand for others. Each gives its number to `common`, which keeps every register that
 * may hold an argument, asks fathom_enter() what to do, and
 *   - jumps to the real function, if the call is not recorded;
 *   - calls it, if registers pass all of its arguments: their frame stays on the stack;
 *   - or puts fathom_return in the place of the return address and jumps: arguments on the stack stay
 *     where the function expects them. rbx, which every function keeps, then leads to the return
 *     address, also when the stack is unwound by an exception.
 */
#define ARGS 0
#define RAX 48
#define R10 56
#define VECTORS 64
#define HOW 192
#define FRAME 208

	.text
	.p2align 4
	.hidden common
	.type common, @function
common:
	.cfi_startproc
	.cfi_personality 0x1b, fathom_unwinds_frame
	endbr64
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub $FRAME, %rsp
	mov %rdi, ARGS(%rsp)
	mov %rsi, ARGS+8(%rsp)
	mov %rdx, ARGS+16(%rsp)
	mov %rcx, ARGS+24(%rsp)
	mov %r8, ARGS+32(%rsp)
	mov %r9, ARGS+40(%rsp)
	mov %rax, RAX(%rsp)
	mov %r10, R10(%rsp)
	movaps %xmm0, VECTORS(%rsp)
	movaps %xmm1, VECTORS+16(%rsp)
	movaps %xmm2, VECTORS+32(%rsp)
	movaps %xmm3, VECTORS+48(%rsp)
	movaps %xmm4, VECTORS+64(%rsp)
	movaps %xmm5, VECTORS+80(%rsp)
	movaps %xmm6, VECTORS+96(%rsp)
	movaps %xmm7, VECTORS+112(%rsp)
	mov %r11d, %edi
	mov %rsp, %rsi
	lea 8(%rbp), %rdx
	call fathom_enter
	mov %rax, %r11
	mov %rdx, HOW(%rsp)
	movaps VECTORS(%rsp), %xmm0
	movaps VECTORS+16(%rsp), %xmm1
	movaps VECTORS+32(%rsp), %xmm2
	movaps VECTORS+48(%rsp), %xmm3
	movaps VECTORS+64(%rsp), %xmm4
	movaps VECTORS+80(%rsp), %xmm5
	movaps VECTORS+96(%rsp), %xmm6
	movaps VECTORS+112(%rsp), %xmm7
	cmp $1, %rdx
	jb 1f
	je 2f
	/* rdx leads to a struct place. */
	mov %rbx, 8(%rdx)
	mov %rdx, %rbx
	lea fathom_return(%rip), %rcx
	mov %rcx, 8(%rbp)
1:
	mov ARGS(%rsp), %rdi
	mov ARGS+8(%rsp), %rsi
	mov ARGS+16(%rsp), %rdx
	mov ARGS+24(%rsp), %rcx
	mov ARGS+32(%rsp), %r8
	mov ARGS+40(%rsp), %r9
	mov RAX(%rsp), %rax
	mov R10(%rsp), %r10
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp *%r11
	.cfi_restore_state
2:
	mov ARGS(%rsp), %rdi
	mov ARGS+8(%rsp), %rsi
	mov ARGS+16(%rsp), %rdx
	mov ARGS+24(%rsp), %rcx
	mov ARGS+32(%rsp), %r8
	mov ARGS+40(%rsp), %r9
	mov RAX(%rsp), %rax
	mov R10(%rsp), %r10
	call *%r11
	mov %rax, RAX(%rsp)
	mov %rdx, ARGS(%rsp)
	movaps %xmm0, VECTORS(%rsp)
	movaps %xmm1, VECTORS+16(%rsp)
	lea 8(%rbp), %rdi
	mov %rax, %rsi
	call fathom_leave
	mov RAX(%rsp), %rax
	mov ARGS(%rsp), %rdx
	movaps VECTORS(%rsp), %xmm0
	movaps VECTORS+16(%rsp), %xmm1
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size common, . - common

	.p2align 4
	.type fathom_returned, @function
fathom_returned:
	.cfi_startproc
	.cfi_personality 0x1b, fathom_unwinds_place
	/* rbx leads to { return address, rbx of the caller }. The unwinder tells frames by their CFA:
	 * one that no other frame has. The caller's stack pointer is none. */
	.cfi_def_cfa %rsp, 4
	.cfi_escape 0x16, 0x07, 0x02, 0x77, 0x00
	.cfi_escape 0x10, 0x10, 0x02, 0x73, 0x00
	.cfi_escape 0x10, 0x03, 0x02, 0x73, 0x08
	/* The unwinder looks for the byte before a return address. */
	nop
	.globl fathom_return
	.hidden fathom_return
fathom_return:
	endbr64
	sub $64, %rsp
	.cfi_def_cfa_offset 68
	.cfi_escape 0x16, 0x07, 0x03, 0x77, 0xc0, 0x00
	mov %rax, (%rsp)
	mov %rdx, 8(%rsp)
	movaps %xmm0, 16(%rsp)
	movaps %xmm1, 32(%rsp)
	mov %rbx, %rdi
	mov %rax, %rsi
	call fathom_returns
	mov %rdx, %rbx
	.cfi_same_value %rbx
	.cfi_register %rip, %rax
	mov %rax, %r11
	.cfi_register %rip, %r11
	mov (%rsp), %rax
	mov 8(%rsp), %rdx
	movaps 16(%rsp), %xmm0
	movaps 32(%rsp), %xmm1
	add $64, %rsp
	.cfi_def_cfa_offset 4
	.cfi_escape 0x16, 0x07, 0x02, 0x77, 0x00
	jmp *%r11
	.cfi_endproc
	.size fathom_returned, . - fathom_returned

/* longjmp() and its relatives: what is left by them has ended. Their numbers are behind the stubs'. */
	.p2align 4
	.type leaps, @function
leaps:
	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub $16, %rsp
	mov %rdi, (%rsp)
	mov %rsi, 8(%rsp)
	mov %rdi, %rsi
	mov %r11d, %edi
	lea 8(%rbp), %rdx
	call fathom_leaps
	mov %rax, %r11
	mov (%rsp), %rdi
	mov 8(%rsp), %rsi
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp *%r11
	.cfi_endproc
	.size leaps, . - leaps

	.macro leap name, number
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	mov $\number, %r11d
	jmp leaps
	.cfi_endproc
	.size \name, . - \name
	.endm

	leap longjmp, 257
	leap _longjmp, 258
	leap siglongjmp, 259
	leap __longjmp_chk, 260

/* A name that the recorder replaces, and what stands for it. */
	.macro stub name, number
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	mov $\number, %r11d
	jmp common
	.cfi_endproc
	.size \name, . - \name
	.endm

/* One line a stub, which the build writes. */
#include "names.S"

	.section .note.GNU-stack, "", @progbits
