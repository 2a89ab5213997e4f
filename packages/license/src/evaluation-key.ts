/**
 * Public key of evaluation builds, used when `license.public-key` is empty. Its private half was thrown away when it was made:
 * no license verifies with it, so that an evaluation build has its evaluation period and nothing else. A vendor's build
 * names the vendor's key (docs/license.md).
 */
export const EVALUATION_PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----
MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEAn5IJxDVzFSoLt/0NLVXg
XhgeUqTCGxuBRH09dtAVf4hXqtUyMSiU97i2S64+SZWwdw+YkleuzPVVLUWWGgf5
oHEzuo4O39SftcB8H8shwM7r1JnYq9EcqOarMR5V6I+Uy/vpidcmDTwfks4nsVgq
sda5BwhrGCWfyiQEl1UTn/RYapHTaZEA1/65UUIRJPOrFs6z5e3TkjvhJGO23V08
cVEuAgK57JVTNFxQ9jocn9Ykzi5KDRXBT+YTwhmshm53mregvNO/JNFBlyZRjhPC
n2n9S98JnW/pi1REqfi3uoQieQ705+eldmGcGUkmHlv/Kln7WPCIWpoYEGdDHN3c
xfWnqXaHSB28/Ee5sEhEpFDYxupRD3xG+Ybmb9lL5aaL00gYyza6q9OnVbefDR1n
I+sJYBPd/n/FxVcGZBMF1BjwaynZFcnI1cnuc+HuH0luI2fLo6NhCEQYWmIKjWF2
1NoylcyYNGMh2mGKnUGHc/Wj15FuzxL+IIYe8djwxgIzAgMBAAE=
-----END PUBLIC KEY-----
`;
