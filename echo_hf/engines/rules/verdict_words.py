"""The words by which plain rules recognise that somebody judges, or tried, a result."""

from __future__ import annotations

from echo_hf.engines.rules.words import words

WONDER = words(
    en="""insane wow woah whoa unreal crazy wild mindblowing mindblown incredible omg amazing
    bonkers unbelievable magic magical stunning wtf""",
    es="increíble brutal alucinante flipante",
    fr="incroyable dingue bluffant ouf",
    de="wahnsinn krass unglaublich irre",
    pt="incrível sensacional",
    it="incredibile pazzesco assurdo",
)
PRAISE = WONDER | words(
    en="""love loved loves loving awesome great cool coolest beautiful beautifully nice nicely
    gorgeous lovely perfect perfectly fantastic adorable cute brilliant excellent impressive
    impressed hilarious genius wonderful best good better works worked nailed nailing fire dope
    sick epic superb flawless flawlessly accurate spectacular outstanding delightful lol haha yay
    bravo favorite favourite obsessed delighted fun funny charming crisp convincing lifelike
    clean correct correctly readable legible sharp""",
    es="""genial precioso preciosa perfecto perfecta encanta hermoso hermosa bonito bonita chulo
    chula maravilloso espectacular funciona funcionó buenísimo bueno buena""",
    fr="""génial superbe magnifique parfait parfaite adore sublime excellente fonctionne marche
    joli jolie beau belle réussi""",
    de="""toll super schön wunderschön perfekt liebe geil klasse funktioniert großartig gelungen
    klappt""",
    pt="""lindo linda perfeito perfeita adorei amei maravilhoso ótimo ótima funcionou bom demais""",
    it="bello bella bellissimo bellissima perfetto perfetta stupendo fantastico funziona ottimo",
)
COMPLAINT = words(
    en="""bad terrible awful ugly wrong fail fails failed failing failure broken weird creepy worse
    worst blurry distorted inaccurate refuse refuses refused refusal horrible garbage slop meh
    disappointing disappointed boring lame mess messed unusable uncanny yellowish overcooked
    misspelled typo typos garbled lost hate hated hates ruined mangled plastic unfortunately
    struggles struggled hallucinated ignored ignores cropped
    drift drifts missing""",
    es="malo mala feo fea falla falló fallo borroso peor rechazó decepcionante",
    fr="mauvais mauvaise moche raté ratée échoue échoué flou pire décevant affreux",
    de="""schlecht hässlich falsch kaputt unscharf schlimm leider misslungen enttäuschend
    abgelehnt""",
    pt="ruim feio feia falhou falha borrado pior recusou errado",
    it="brutto brutta sbagliato fallito sfocato peggio rifiuta deludente orribile",
)
# What the writer of a verdict says beside the verdict itself, and a title does not.
SELF = words(
    en="""this it its is are was were so i im ive my me they these that just really very looks look
    came turned works worked result results wow""",
    es="esto es está son muy mi me quedó resultado que",
    fr="c est ce cette très mon j ai résultat",
    de="das ist sind war sehr mein mich ergebnis",
    pt="isto é está são muito meu ficou",
    it="questo è sono molto mio risultato",
)
TRIED = words(
    en="tried trying attempt attempts mine result results output outputs testing tested used",
    es="probé probado intenté intento salió usé usado resultado resultados mío mía",
    fr="essayé testé utilisé résultat résultats mien mienne essai",
    de="probiert ausprobiert versucht versuch getestet ergebnis ergebnisse benutzt",
    pt="testei tentei usei tentativa",
    it="provato usato risultato risultati",
)
