//! Checks whether locks can be trusted on a folder's file system.
//!
//! SQLite and kernel locks depend on the file system: over a network, locks can be granted twice or
//! block forever.

use std::path::Path;

use super::PlaceError;

/// An accepted file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// A local one, known by name.
    Local(&'static str),
    /// An unknown one with this number, assumed to be local.
    Unrecognised(u32),
    /// Not checked, because the check does not support this operating system.
    Unchecked,
}

/// Checks that locks can be trusted in `folder`, or in the nearest existing folder above it.
///
/// Refuses read-only mounts ([`PlaceError::ReadOnly`], on every Unix) and, on Linux, network file
/// systems ([`PlaceError::Network`]) and FUSE ([`PlaceError::UserSpace`]).
pub fn check_file_system(folder: &Path) -> Result<FileSystem, PlaceError> {
    let existing = folder.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(folder);
    refuse_read_only(folder, existing)?;
    recognise(folder, existing)
}

fn refuse_read_only(folder: &Path, existing: &Path) -> Result<(), PlaceError> {
    let flags = rustix::fs::statvfs(existing)
        .map_err(|error| PlaceError::from_reading(existing, error.into()))?
        .f_flag;
    judge_flags(folder, flags)
}

fn judge_flags(folder: &Path, flags: rustix::fs::StatVfsMountFlags) -> Result<(), PlaceError> {
    if flags.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        let path = folder.to_owned();
        return Err(PlaceError::ReadOnly { path });
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn recognise(folder: &Path, existing: &Path) -> Result<FileSystem, PlaceError> {
    let statistics = rustix::fs::statfs(existing)
        .map_err(|error| PlaceError::from_reading(existing, error.into()))?;
    // The numbers have 32 bits; the field is signed and wider on some machines.
    magic::judge(folder, statistics.f_type as u32)
}

#[cfg(not(target_os = "linux"))]
fn recognise(_folder: &Path, _existing: &Path) -> Result<FileSystem, PlaceError> {
    Ok(FileSystem::Unchecked)
}

/// The numbers of file systems on Linux, from statfs(2) and the kernel's headers.
#[cfg(target_os = "linux")]
mod magic {
    use super::{FileSystem, Path, PlaceError};

    const FUSE: u32 = 0x6573_5546;

    /// On these, several machines, or a machine and its guest, share files, and a lock of one may
    /// not exclude the other.
    const NETWORK: &[(u32, &str)] = &[
        (0x0000_6969, "NFS"),
        (0x0000_517B, "SMB"),
        (0xFE53_4D42, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0x5346_414F, "AFS"),
        (0x6B41_4653, "AFS"),
        (0x00C3_6400, "Ceph"),
        (0x0102_1997, "9p, as WSL uses for Windows drives"),
        (0x7375_7245, "Coda"),
        (0x0000_564C, "NCP"),
        (0x0116_1970, "GFS2"),
        (0x7461_636F, "OCFS2"),
        (0x0BD0_0BD0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x1983_0326, "BeeGFS"),
        (0xAAD7_AAEA, "PanFS"),
        (0xBACB_ACBC, "VMware shared folder"),
        (0x786F_4256, "VirtualBox shared folder"),
        (0x7C7C_6673, "Parallels shared folder"),
    ];

    const LOCAL: &[(u32, &str)] = &[
        (0x0000_EF53, "ext"),
        (0x5846_5342, "xfs"),
        (0x9123_683E, "btrfs"),
        (0x0102_1994, "tmpfs"),
        (0x8584_58F6, "ramfs"),
        (0x794C_7630, "overlayfs"),
        (0x2FC1_2FC1, "zfs"),
        (0xF2F5_2010, "f2fs"),
        (0xCA45_1A4E, "bcachefs"),
        (0x3153_464A, "jfs"),
        (0x5265_4973, "reiserfs"),
        (0x0000_3434, "nilfs"),
        (0x0000_F15F, "ecryptfs"),
        (0x0000_4D44, "vfat"),
        (0x2011_BAB0, "exfat"),
        (0x5346_544E, "ntfs"),
        (0x7366_746E, "ntfs3"),
        (0x0000_482B, "hfsplus"),
    ];

    pub(super) fn judge(folder: &Path, number: u32) -> Result<FileSystem, PlaceError> {
        let path = folder.to_owned();
        if number == FUSE {
            return Err(PlaceError::UserSpace { path });
        }
        if let Some(name) = look_up(NETWORK, number) {
            return Err(PlaceError::Network { path, name });
        }
        Ok(look_up(LOCAL, number).map_or(FileSystem::Unrecognised(number), FileSystem::Local))
    }

    fn look_up(table: &[(u32, &'static str)], number: u32) -> Option<&'static str> {
        let found = table.iter().find(|(candidate, _)| *candidate == number);
        found.map(|(_, name)| *name)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::fs::StatVfsMountFlags;

    #[test]
    fn network_file_systems_are_refused_by_name() {
        let folder = Path::new("/data/.tenure");
        for (number, expected) in [
            (0x6969, "NFS"),
            (0x517B, "SMB"),
            (0xFE53_4D42, "SMB"),
            (0xFF53_4D42, "CIFS"),
            (0x0102_1997, "9p, as WSL uses for Windows drives"),
        ] {
            let error = magic::judge(folder, number).expect_err(expected);
            assert!(matches!(error, PlaceError::Network { name, .. } if name == expected));
            assert_eq!(
                error.to_string(),
                format!(
                    "/data/.tenure is on a network file system ({expected}), where locks cannot be trusted"
                )
            );
        }
    }

    #[test]
    fn fuse_is_refused_by_an_error_of_its_own() {
        let error = magic::judge(Path::new("/data"), 0x6573_5546).expect_err("FUSE");
        assert!(matches!(error, PlaceError::UserSpace { .. }));
    }

    #[test]
    fn local_and_unrecognised_file_systems_are_accepted() {
        let folder = Path::new("/data");
        assert_eq!(magic::judge(folder, 0xEF53).expect("ext is local"), FileSystem::Local("ext"));
        assert_eq!(
            magic::judge(folder, 0x1234_5678).expect("taken for local"),
            FileSystem::Unrecognised(0x1234_5678)
        );
    }

    #[test]
    fn a_read_only_mount_is_refused() {
        let folder = Path::new("/data");
        let flags = StatVfsMountFlags::RDONLY | StatVfsMountFlags::NOSUID;
        let error = judge_flags(folder, flags).expect_err("read-only");
        assert!(matches!(error, PlaceError::ReadOnly { .. }));
        assert!(judge_flags(folder, StatVfsMountFlags::NOSUID).is_ok());
    }

    #[test]
    fn a_folder_that_does_not_exist_yet_is_judged_by_the_one_above() {
        let proc_magic = FileSystem::Unrecognised(0x9FA0);
        let folder = Path::new("/proc/self/no/such/folder");
        assert_eq!(check_file_system(folder).expect("accepted"), proc_magic);
    }
}
