//! Where a static probe has its arguments: `8@%rbx -4@112(%rsp)`, in the assembler's words.
//!
//! Source: <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>, and the operands of
//! the assembler of each processor.

use fathom_model::abi::{USDT_CONSTANT, USDT_MEMORY, USDT_NONE, USDT_REGISTER};

/// An argument, as the programs in the kernel read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    /// `USDT_NONE` and so on.
    pub kind: u8,
    /// Place of the register in `struct pt_regs`, bytes.
    pub at: u16,
    /// The constant, or the distance from the register.
    pub value: i64,
    /// Its size is `1 << bits` bytes.
    pub bits: u8,
}

impl Argument {
    /// None, or one in a form that the programs do not read.
    pub const NONE: Self = Self {
        kind: USDT_NONE as u8,
        at: 0,
        value: 0,
        bits: 3,
    };
}

/// Argument `number`, counted from 1, of the list in a note.
pub(super) fn argument(list: &str, number: u8) -> Argument {
    let found = words(list).nth(usize::from(number).wrapping_sub(1));
    found.and_then(parse).unwrap_or(Argument::NONE)
}

/// The arguments: separated by spaces, except those within brackets.
fn words(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    let separate = move |c: char| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            _ => {}
        }
        c.is_whitespace() && depth <= 0
    };
    list.split(separate).filter(|word| !word.is_empty())
}

fn parse(word: &str) -> Option<Argument> {
    let (size, operand) = word.split_once('@')?;
    let bits = match size.trim_start_matches('-') {
        "1" => 0,
        "2" => 1,
        "4" => 2,
        "8" => 3,
        _ => return None,
    };
    let (kind, register, value) = operand_of(operand)?;
    let at = match register {
        Some(register) => place(register)?,
        None => 0,
    };
    Some(Argument {
        kind: kind as u8,
        at,
        value,
        bits,
    })
}

type Operand<'a> = (u32, Option<&'a str>, i64);

/// `%rbx`, `$5`, `-144(%rbp)`.
#[cfg(target_arch = "x86_64")]
fn operand_of(operand: &str) -> Option<Operand<'_>> {
    if let Some(constant) = operand.strip_prefix('$') {
        return Some((USDT_CONSTANT, None, constant.parse().ok()?));
    }
    if let Some(register) = operand.strip_prefix('%') {
        return Some((USDT_REGISTER, Some(register), 0));
    }
    let (distance, register) = operand.strip_suffix(')')?.split_once("(%")?;
    let distance = match distance {
        "" => 0,
        distance => distance.parse().ok()?,
    };
    Some((USDT_MEMORY, Some(register), distance))
}

/// `x0`, `5`, `[sp, 16]`.
#[cfg(not(target_arch = "x86_64"))]
fn operand_of(operand: &str) -> Option<Operand<'_>> {
    if let Ok(constant) = operand.parse() {
        return Some((USDT_CONSTANT, None, constant));
    }
    let Some(inside) = operand.strip_prefix('[') else {
        return Some((USDT_REGISTER, Some(operand), 0));
    };
    let inside = inside.strip_suffix(']')?;
    Some(match inside.split_once(',') {
        Some((register, distance)) => (
            USDT_MEMORY,
            Some(register.trim()),
            distance.trim().parse().ok()?,
        ),
        None => (USDT_MEMORY, Some(inside.trim()), 0),
    })
}

/// Place of a register in `struct pt_regs`: arch/x86/include/asm/ptrace.h.
#[cfg(target_arch = "x86_64")]
fn place(register: &str) -> Option<u16> {
    /// In the order of the structure, each with its names by size.
    const REGISTERS: [&[&str]; 21] = [
        &["r15", "r15d", "r15w", "r15b"],
        &["r14", "r14d", "r14w", "r14b"],
        &["r13", "r13d", "r13w", "r13b"],
        &["r12", "r12d", "r12w", "r12b"],
        &["rbp", "ebp", "bp", "bpl"],
        &["rbx", "ebx", "bx", "bl"],
        &["r11", "r11d", "r11w", "r11b"],
        &["r10", "r10d", "r10w", "r10b"],
        &["r9", "r9d", "r9w", "r9b"],
        &["r8", "r8d", "r8w", "r8b"],
        &["rax", "eax", "ax", "al"],
        &["rcx", "ecx", "cx", "cl"],
        &["rdx", "edx", "dx", "dl"],
        &["rsi", "esi", "si", "sil"],
        &["rdi", "edi", "di", "dil"],
        &[],
        &["rip"],
        &[],
        &[],
        &["rsp", "esp", "sp", "spl"],
        &[],
    ];
    let place = REGISTERS.iter().position(|names| names.contains(&register));
    place.map(|place| place as u16 * 8)
}

/// Place of a register in `struct pt_regs`: arch/arm64/include/asm/ptrace.h.
#[cfg(not(target_arch = "x86_64"))]
fn place(register: &str) -> Option<u16> {
    if register == "sp" {
        return Some(31 * 8);
    }
    let number = register.strip_prefix(['x', 'w'])?;
    let number: u16 = number.parse().ok()?;
    (number <= 30).then_some(number * 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(list: &str, number: u8) -> (u32, u16, i64, u8) {
        let found = argument(list, number);
        (u32::from(found.kind), found.at, found.value, found.bits)
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn operands() {
        let list = "8@%rbx -4@112(%rsp) 1@$-3 8@(%rax) 2@%r8w 8@-8(%rax,%rdx,8) 8@x(%rip)";
        assert_eq!(is(list, 1), (USDT_REGISTER, 40, 0, 3));
        assert_eq!(is(list, 2), (USDT_MEMORY, 152, 112, 2));
        assert_eq!(is(list, 3), (USDT_CONSTANT, 0, -3, 0));
        assert_eq!(is(list, 4), (USDT_MEMORY, 80, 0, 3));
        assert_eq!(is(list, 5), (USDT_REGISTER, 72, 0, 1));
        // With an index, at a symbol, or not there.
        for number in [0, 6, 7, 8] {
            assert_eq!(argument(list, number), Argument::NONE, "{number}");
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[test]
    fn operands() {
        let list = "8@x19 -4@[sp, 16] 1@-3 8@[x0] 4@w2 8@[x1, x2]";
        assert_eq!(is(list, 1), (USDT_REGISTER, 19 * 8, 0, 3));
        assert_eq!(is(list, 2), (USDT_MEMORY, 31 * 8, 16, 2));
        assert_eq!(is(list, 3), (USDT_CONSTANT, 0, -3, 0));
        assert_eq!(is(list, 4), (USDT_MEMORY, 0, 0, 3));
        assert_eq!(is(list, 5), (USDT_REGISTER, 16, 0, 2));
        assert_eq!(argument(list, 6), Argument::NONE);
    }

    #[test]
    fn nonsense_is_no_argument() {
        for list in [
            "", "@", "8@", "9@%rax", "8@%xyz", "8@)", "8@(%", "((((", "8@[", "]]] 8",
        ] {
            assert_eq!(argument(list, 1), Argument::NONE, "{list}");
        }
    }
}
