def claims_core_seconds(profile, folder):
    return 0.0


def curves_for_claims(profile, seed):
    return []


def reproduce_claims(profile, folder, **options):
    return []
