//! Reads certificates without webpki, which accepts only version 3 of X.509: the public key, whether the certificate is self-issued, and
//! its validity period.
//!
//! The server's certificate may itself be among the trusted ones, as `openssl req -x509` creates it. webpki refuses it as an end entity if
//! it may also sign other certificates, which is openssl's default; curl and browsers accept it. Only name and validity are checked then.

use rustls::{
    CertificateError, Error,
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::ParsedCertificate,
};

/// Checks that a certificate is for this name and valid at this time.
///
/// # Errors
/// The reason why it is not.
pub(crate) fn verify(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), Error> {
    let (not_before, not_after) = validity(certificate).ok_or(CertificateError::BadEncoding)?;
    if now.as_secs() < not_before {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > not_after {
        return Err(CertificateError::Expired.into());
    }
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 3;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Whether issuer and subject of a certificate are the same.
pub(crate) fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    fields(certificate).is_some_and(|[issuer, _, subject, _]| issuer == subject)
}

/// The SubjectPublicKeyInfo of a certificate.
pub(crate) fn public_key_info<'a>(
    certificate: &'a CertificateDer<'_>,
) -> Option<SubjectPublicKeyInfoDer<'a>> {
    let [.., key] = fields(certificate)?;
    Some(key.into())
}

/// The content of the AlgorithmIdentifier, and the key, of a public key (RFC 5280, section 4.1.2.7).
pub(crate) fn public_key<'a>(info: &'a SubjectPublicKeyInfoDer<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let (_, info, _) = element(info.as_ref())?;
    let (algorithm_tag, algorithm, info) = element(info)?;
    let (key_tag, key, _) = element(info)?;
    let is_one = (algorithm_tag, key_tag) == (SEQUENCE, BIT_STRING);
    // The first byte is the number of unused bits, which is zero.
    Some((algorithm, key.strip_prefix(&[0])?)).filter(|_| is_one)
}

/// Issuer, validity, subject and the complete SubjectPublicKeyInfo of a certificate (RFC 5280, section 4.1).
fn fields(certificate: &[u8]) -> Option<[&[u8]; 4]> {
    let (tag, certificate, _) = element(certificate)?;
    let (inner_tag, mut fields, _) = element(certificate)?;
    if (tag, inner_tag) != (SEQUENCE, SEQUENCE) {
        return None;
    }
    // Skips the optional version, the serial number and the signature algorithm.
    let before = 2 + usize::from(fields.first() == Some(&VERSION));
    for _ in 0..before {
        fields = element(fields)?.2;
    }
    let (_, issuer, fields) = element(fields)?;
    let (_, validity, fields) = element(fields)?;
    let (_, subject, fields) = element(fields)?;
    let (key_tag, _, rest) = element(fields)?;
    let key = &fields[..fields.len() - rest.len()];
    Some([issuer, validity, subject, key]).filter(|_| key_tag == SEQUENCE)
}

/// Start and end of the validity period of a certificate, in seconds since 1970 (RFC 5280, section 4.1.2.5).
fn validity(certificate: &[u8]) -> Option<(u64, u64)> {
    let [_, validity, ..] = fields(certificate)?;
    let (first_tag, first, rest) = element(validity)?;
    let (second_tag, second, _) = element(rest)?;
    Some((seconds(first_tag, first)?, seconds(second_tag, second)?))
}

/// Tag and content of the first DER element, and the bytes after it (X.690, section 8.1).
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Seconds since 1970 of `YYMMDDhhmmssZ` (UTCTime), or `YYYYMMDDhhmmssZ` (GeneralizedTime).
fn seconds(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all, digit| all * 10 + u64::from(digit - b'0'));
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year = number(year);
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (number(year), rest)
        }
        _ => return None,
    };
    let rest: &[u8; 10] = rest.try_into().ok()?;
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| number(&rest[at..at + 2]));
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some(((days(year, month) + day - 1) * 24 + hour) * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01 to the first day of a month, in the Gregorian calendar.
fn days(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
        + BEFORE[month as usize - 1]
        + u64::from(is_leap && month > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_seconds() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229235959Z", Some(951_868_799)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "261123120000Z", Some(1_795_435_200)),
            (GENERALIZED_TIME, "40960101000000Z", Some(67_090_118_400)),
            (GENERALIZED_TIME, "20240301000000Z", Some(1_709_251_200)),
            (UTC_TIME, "261323120000Z", None),
            (UTC_TIME, "2611231200Z", None),
            (UTC_TIME, "26112312000aZ", None),
            (UTC_TIME, "261123120000", None),
            (2, "261123120000Z", None),
        ] {
            assert_eq!(seconds(tag, text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_certificate_is_valid_for_its_names_and_at_its_time() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it can be made");
        let certificate = made.cert.der();
        let (not_before, not_after) = validity(certificate).expect("it has one");
        assert_eq!((not_before, not_after), (157_766_400, 67_090_118_400));
        let check = |name: &str, now| {
            let name = ServerName::try_from(name).expect("a name");
            verify(certificate, &name, UnixTime::since_unix_epoch(std::time::Duration::from_secs(now)))
        };
        assert_eq!(check("localhost", not_before), Ok(()));
        assert_eq!(check("localhost", not_before - 1), Err(CertificateError::NotValidYet.into()));
        assert_eq!(check("localhost", not_after + 1), Err(CertificateError::Expired.into()));
        assert!(matches!(check("example.org", not_before), Err(Error::InvalidCertificate(_))));
        assert_eq!(validity(&certificate[..20]), None);
    }
}
